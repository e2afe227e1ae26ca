// The field for a token. It goes into the session storage of this tab and into the Authorization header, nowhere else.

import { setToken } from './api.js';
import { fill, h } from './dom.js';

let dialog = null;

export function askForToken(why, onToken) {
  if (dialog) return;
  const field = h('input', { type: 'password', name: 'token', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
  const error = h('p.error-line', { role: 'alert' });
  fill(error, why);
  dialog = h('dialog.login', { 'aria-labelledby': 'login-title' },
    h('form', { method: 'dialog', onsubmit: (event) => {
      event.preventDefault();
      setToken(field.value.trim());
      close();
      onToken();
    } },
    h('h2', { id: 'login-title' }, 'This server asks who you are'),
    h('p.muted', 'Tasks, agents and deliveries are shown to callers with a token. Make one on the server with ', h('code', 'sabir token new'), '.'),
    h('label', { for: 'token' }, 'Token'), field, error,
    h('div.row', h('button', { type: 'submit', class: 'primary' }, 'Log in'),
      h('span.muted.hint', 'It stays in this tab and ends with it.'))));
  // Without a token there is nothing to go back to.
  dialog.addEventListener('cancel', (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
}

function close() {
  dialog.close();
  dialog.remove();
  dialog = null;
}

// What stands where content will be, is missing, or could not be read.

import { adminRefusal } from './api.js';
import { every } from './connection.js';
import { button, fill, h, setText } from './dom.js';

export const skeleton = (rows = 6) => h('div.skeletons', { 'aria-hidden': 'true' }, Array.from({ length: rows }, () => h('div.skeleton')));

export const failureBox = (failure, retry) => h('div.failure', { role: 'alert' },
  h('p', `This could not be read: ${failure.message}.`), button('Try again', retry));

/** Reads again and again, and at once when what it returns is called. A failure is shown in `content`, or above what was read before. */
export function refresh(ms, signal, content, read) {
  let readAt = null;
  const words = h('span');
  const line = h('p.note', { role: 'status', hidden: true }, words, button('Try again', act));
  content.before(line);
  async function act() {
    try {
      await read();
      if (signal.aborted) return;
      readAt = new Date().toLocaleTimeString();
      line.hidden = true;
      content.querySelector(':scope > .failure')?.remove();
    } catch (failure) {
      // A lost connection and a missing token are shown elsewhere.
      if (signal.aborted || failure.status === 0 || failure.status === 401) return;
      if (!readAt) return fill(content, failureBox(failure, act));
      setText(words, `Not updated since ${readAt}: ${failure.message}. `);
      line.hidden = false;
    }
  }
  every(ms, signal, act);
  return act;
}

/** An empty page that says what to do next. */
export const emptyBox = (title, ...children) => h('div.empty', h('h2', title), children);

/** What is missing on a page because the caller is no admin. */
export const limitedNote = (missing) => h('p.note', `Not shown without admin calls: ${missing}. `,
  adminRefusal ? `The server says: ${adminRefusal}.` : 'This server does not have them.');

export const pageHead = (title, ...children) => h('header.page', h('h1', title), children);

/** A dialog that is gone when it is closed. */
export function showDialog(title, attributes, ...children) {
  const dialog = h('dialog', { 'aria-label': title, ...attributes },
    h('header', h('h2', title), button('Close', () => dialog.close(), { class: 'quiet' })), children);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// A message to an agent: the words, examples to start from, and the same request for a terminal.

import { send } from './api.js';
import { copyButton } from './clipboard.js';
import { button, fill, h } from './dom.js';
import { renderParts } from './parts.js';
import { copyMenu, sendCommand, sendRequest } from './snippets.js';

/** `where` has the agent, the task or the context when the message is sent; `onTask` gets the task that it belongs to. */
export function sendForm(where, { examples = [], label, withCommand = false }, onTask) {
  const words = h('textarea', { rows: 2, id: 'message', 'aria-label': label, placeholder: `${label}…` });
  const outcome = h('div.outcome', { role: 'status' });
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Send');
  const grow = () => {
    words.style.height = 'auto';
    words.style.height = `${Math.min(words.scrollHeight + 2, 320)}px`;
  };
  words.addEventListener('input', grow);
  words.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  const command = () => sendCommand(where.agent, words.value.trim() || examples[0] || 'hello');
  const form = h('form.send', { onsubmit: async (event) => {
    event.preventDefault();
    const text = words.value.trim();
    if (!text) return words.focus();
    submit.disabled = true;
    fill(outcome);
    try {
      const answer = await send([{ text }], where);
      words.value = '';
      grow();
      if (answer.task) onTask(answer.task);
      else fill(outcome, h('div.reply', h('b', 'The agent answered without a task:'), renderParts(answer.message?.parts)));
    } catch (failure) {
      fill(outcome, h('p.error-line', `Not sent: ${failure.message}.`));
    } finally {
      submit.disabled = false;
    }
  } },
  examples.length > 0 && h('div.chips', { role: 'group', 'aria-label': 'Examples' }, examples.map((example) => button(example, () => {
    words.value = example;
    grow();
    words.focus();
  }, { class: 'chip' }))),
  words,
  h('div.row', submit, h('span.muted.hint', 'Ctrl+Enter sends'), h('span.spring'),
    withCommand && copyMenu(() => sendRequest(where.agent, words.value.trim() || 'hello')),
    withCommand && copyButton(command, 'Copy sabir send')),
  outcome);
  form.focusField = () => words.focus();
  return form;
}

// Copying, with an answer that one sees.

import { announce, h } from './dom.js';

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages of plain HTTP servers have no clipboard but this one.
    const field = h('textarea.unseen', { value: text });
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  announce('Copied');
}

export function copyButton(text, label = 'Copy', attributes = {}) {
  const element = h('button', { type: 'button', class: 'copy', onclick: async (event) => {
    event.preventDefault();
    event.stopPropagation();
    await copy(typeof text === 'function' ? text() : text);
    element.classList.add('done');
    setTimeout(() => element.classList.remove('done'), 1200);
  }, ...attributes }, h('span', label));
  return element;
}

/** A line of shell, ready to be copied. */
export function commandLine(command) {
  return h('span.command', h('code', command), copyButton(command));
}

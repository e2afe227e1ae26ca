// Elements without HTML: what is given as text becomes a text node, whoever wrote it, and letters that nobody sees become marks.

import { pieces, spelled } from './hidden_letters.js';

const PROPERTIES = new Set(['value', 'checked', 'disabled', 'hidden', 'open', 'selected']);
/** Attributes that people read. */
const WORDS = new Set(['title', 'alt', 'aria-label', 'placeholder']);

/** An element (`tag.class.class`) with attributes, listeners (`onclick`) and children. */
export function h(name, ...children) {
  const [tag, ...classes] = name.split('.');
  const element = document.createElement(tag);
  element.className = classes.join(' ');
  const isGiven = children[0]?.constructor === Object;
  for (const [key, value] of Object.entries(isGiven ? children.shift() : {})) {
    if (value === undefined || value === null) continue;
    if (PROPERTIES.has(key)) element[key] = value;
    else if (key === 'class') element.className = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== false) element.setAttribute(key, value === true ? '' : WORDS.has(key) ? spelled(String(value)) : value);
  }
  return add(element, children);
}

/** Adds children; nothing becomes of `null`, `undefined` and `false`. One by one: a call takes only so many arguments. */
function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (typeof child === 'string') addText(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function addText(element, text) {
  for (const [words, letters] of pieces(text)) {
    element.append(letters ? h('span.hidden-letters', { title: 'Letters that cannot be seen' }, words) : words);
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

/** Sets text only if it is another one, so that nothing flickers and screen readers stay calm. */
export function setText(element, text) {
  const words = spelled(String(text));
  if (element.textContent !== words) element.textContent = words;
}

/** Tells screen readers what has happened. The same words are not repeated. */
export function announce(words) {
  setText(document.getElementById('announcer'), words);
}

export function button(label, onclick, attributes) {
  return h('button', { type: 'button', onclick, ...attributes }, label);
}

/** A button that asks once before it acts. */
export function confirmButton(label, question, act, attributes) {
  const ask = button(label, () => {
    box.replaceChildren(yes, no);
    yes.focus();
  }, attributes);
  const reset = () => box.replaceChildren(ask);
  const yes = button(question, async () => {
    yes.disabled = true;
    try {
      await act();
    } finally {
      yes.disabled = false;
      reset();
    }
  }, { class: 'danger' });
  const no = button('Keep', () => {
    reset();
    ask.focus();
  });
  const box = h('span.confirm', { onkeydown: (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    reset();
    ask.focus();
  } }, ask);
  box.ask = () => ask.isConnected && !ask.disabled && ask.click();
  return box;
}

/** Waits, or ends early with the signal. */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

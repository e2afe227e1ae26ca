// The keyboard: keys of all pages, keys of the page that is open, and the list of both.

import { showDialog } from './boxes.js';
import { h } from './dom.js';

const GLOBAL = new Map();
let ofPage = new Map();
let prefix = '';
let forget;

/** Keys that work everywhere: `[key, words, act]`; a key may be two, such as `g t`. */
export function globalKeys(rows) {
  for (const [key, words, act] of rows) GLOBAL.set(key, { words, act });
}

/** Keys of the page that opens; the ones of the page before are gone. */
export function pageKeys(rows = []) {
  ofPage = new Map(rows.map(([key, words, act]) => [key, { words, act }]));
}

export function listen() {
  document.addEventListener('keydown', (event) => {
    const field = event.target.closest?.('input, textarea, select');
    if (field) {
      if (event.key === 'Escape') field.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open].login')) return;
    if (document.querySelector('dialog[open]') && event.key !== '?') return;
    // A key that is held moves through rows and does nothing else twice: the next question is another one.
    if (event.repeat && !/^[jk]$/.test(event.key)) return;
    const key = prefix ? `${prefix} ${event.key}` : event.key;
    const found = ofPage.get(key) ?? GLOBAL.get(key);
    clearTimeout(forget);
    prefix = '';
    if (found) {
      event.preventDefault();
      found.act(event);
    } else if ([...GLOBAL.keys()].some((known) => known.startsWith(`${event.key} `))) {
      prefix = event.key;
      forget = setTimeout(() => { prefix = ''; }, 1500);
    }
  });
}

/** Moves the focus among the rows of the page. */
export function moveRow(step) {
  const rows = [...document.querySelectorAll('#main [data-row]')].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + step))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

export function showKeys() {
  const open = document.querySelector('dialog.keys');
  if (open) return open.close();
  const table = (title, keys) => keys.size > 0 && [h('h3', title), h('dl', [...keys].map(([key, { words }]) => [
    h('dt', key.split(' ').map((one) => h('kbd', one))), h('dd', words)]))];
  showDialog('Keys', { class: 'keys' }, table('On this page', ofPage), table('Everywhere', GLOBAL));
}

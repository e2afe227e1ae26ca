// The frames of a task as they go over the wire, in each dialect side by side.

import { DIALECTS, frames } from './api.js';
import { showDialog } from './boxes.js';
import { copyButton } from './clipboard.js';
import { button, fill, h } from './dom.js';

const STEP = 10;

/** Shows the frames from event number `from`; `onMove` is told where the reader has gone, and null at the end. */
export function showFrames(task, total, from, onMove) {
  let start = Math.max(1, Math.min(from, total));
  let reading = new AbortController();
  const chosen = new Set(window.innerWidth < 700 ? ['rest10'] : ['rest10', 'rpc03', 'rpc01']);
  const grid = h('div.frames');
  const earlier = button('Earlier', () => move(start - STEP));
  const later = button('Later', () => move(start + STEP));
  const place = h('span.muted');
  const choices = h('div.choices', { role: 'group', 'aria-label': 'Dialects' }, DIALECTS.map((dialect) => h('label',
    h('input', { type: 'checkbox', checked: chosen.has(dialect.id), onchange: (event) => {
      if (event.target.checked) chosen.add(dialect.id);
      else chosen.delete(dialect.id);
      read();
    } }), ` ${dialect.name}`)));
  const dialog = showDialog('Raw frames', { class: 'raw' }, h('div.row', choices, h('span.spring'), place, earlier, later), grid);
  dialog.addEventListener('close', () => {
    reading.abort();
    onMove(null);
  });

  function move(to) {
    start = Math.max(1, Math.min(to, total));
    onMove(start);
    read();
  }

  async function read() {
    reading.abort();
    reading = new AbortController();
    const { signal } = reading;
    const end = Math.min(total, start + STEP - 1);
    earlier.disabled = start <= 1;
    later.disabled = end >= total;
    fill(place, `Events ${start}–${end} of ${total}`);
    const columns = DIALECTS.filter((dialect) => chosen.has(dialect.id));
    grid.style.setProperty('--columns', columns.length || 1);
    const read = await Promise.all(columns.map((dialect) => framesOf(task, dialect, start, end, signal)));
    if (signal.aborted) return;
    const cells = columns.map((dialect) => h('div.column', dialect.name));
    for (let number = start; number <= end; number += 1) {
      for (const [index, column] of read.entries()) {
        const data = column.get(number) ?? column.get('error');
        cells.push(h('div.frame', { 'data-frame': number, 'data-dialect': columns[index].id },
          h('div.head', `id: ${number}`, data && copyButton(data)), h('pre.code', pretty(data ?? 'no frame in this dialect'))));
      }
    }
    fill(grid, cells);
  }
  read();
}

async function framesOf(task, dialect, start, end, signal) {
  const found = new Map();
  const enough = new AbortController();
  const stop = () => enough.abort();
  signal.addEventListener('abort', stop, { once: true });
  // A frame that a dialect does not have must not keep the others waiting.
  const timer = setTimeout(stop, 5000);
  try {
    for await (const { id, data } of frames(task, start - 1, enough.signal, dialect)) {
      if (id <= end) found.set(id, data);
      if (id >= end) break;
    }
  } catch (failure) {
    if (!signal.aborted) found.set('error', failure.message);
  } finally {
    clearTimeout(timer);
    stop();
  }
  return found;
}

function pretty(data) {
  try {
    return JSON.stringify(JSON.parse(data), null, 2);
  } catch {
    return data;
  }
}

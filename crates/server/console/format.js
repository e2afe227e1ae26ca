// How times, sizes and numbers are written.

import { h, setText } from './dom.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const count = (number) => Number(number ?? 0).toLocaleString('en');
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function span(ms) {
  if (!(ms >= 0)) return '';
  if (ms < SECOND) return `${ms < 10 ? +ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m ${Math.floor((ms % MINUTE) / SECOND)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} m`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

/** How long ago, in one word. Clocks differ a little: what seems to be ahead has just been. */
export function age(time, now = Date.now()) {
  const ms = now - Date.parse(time);
  if (Number.isNaN(ms)) return '';
  return ms < 5 * SECOND ? 'now' : rough(ms);
}

function rough(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

export function bytes(size) {
  if (size === undefined || size === null) return '';
  if (size < 1000) return `${size} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let unit = -1;
  let value = size;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 1000 && unit < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

const absolute = (time) => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : `${date.toLocaleString()}.${String(date.getMilliseconds()).padStart(3, '0')}`;
};

/** A time that grows older by itself; the exact one on hover. */
export function ago(time) {
  if (!time || Number.isNaN(Date.parse(time))) return h('span.time');
  return h('time', { datetime: time, title: absolute(time), class: 'time' }, age(time));
}

/** How long until a time that is planned. */
function until(time, now = Date.now()) {
  const ms = Date.parse(time) - now;
  return ms < SECOND ? 'now' : `in ${rough(ms)}`;
}

/** The same for a time to come. */
export const ahead = (time) => h('time', { datetime: time, title: absolute(time), class: 'time', 'data-planned': '' }, until(time));

/** The age of everything on the page, once in a while. */
export function growOlder() {
  const now = Date.now();
  for (const element of document.querySelectorAll('time[datetime]')) setText(element, (element.matches('[data-planned]') ? until : age)(element.dateTime, now));
}

export const firstLine = (text) => (text ?? '').trim().split('\n', 1)[0];
export const short = (id) => (id?.length > 20 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id ?? '');

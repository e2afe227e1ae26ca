// The states of a task: how they are named, sorted and shown.

import { h, setText } from './dom.js';

export const STATES = ['submitted', 'working', 'input-required', 'auth-required', 'completed', 'failed', 'canceled', 'rejected'];
const TERMINAL = new Set(['completed', 'failed', 'canceled', 'rejected']);
const WAITING = new Set(['input-required', 'auth-required']);

/** What a filter by this name stands for. */
export const GROUPS = { open: STATES.slice(0, 4), waiting: [...WAITING] };

export const isOver = (state) => TERMINAL.has(state);
export const isWaiting = (state) => WAITING.has(state);
/** `TASK_STATE_INPUT_REQUIRED` as `input-required`. */
export const ofA2a = (state) => (state ?? '').replace(/^TASK_STATE_/, '').toLowerCase().replaceAll('_', '-');
export const toA2a = (state) => `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;

/** The state as colour and word. */
export function badge(state) {
  const element = h('span.state', { 'data-state': state }, h('span', state));
  element.show = (next) => {
    if (element.dataset.state !== next) element.dataset.state = next;
    setText(element.firstChild, next);
  };
  return element;
}

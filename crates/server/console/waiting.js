// Every open question of every agent, the oldest first, answered in place.

import { asRow, waitingTasks } from './api.js';
import { emptyBox, failureBox, pageHead, skeleton } from './boxes.js';
import { commandLine } from './clipboard.js';
import { every } from './connection.js';
import { fill, h } from './dom.js';
import { firstLine, short } from './format.js';
import { pageKeys } from './keys.js';
import { questionCard } from './question.js';

export function open({ main, signal, href }) {
  const list = h('div.questions', { 'aria-label': 'Open questions' }, skeleton(3));
  const cards = new Map();
  fill(main, pageHead('Waiting', h('p.sub', 'Agents that need an answer, the oldest question first.')), list);
  const focused = () => [...cards.values()].find((card) => card.contains(document.activeElement)) ?? (cards.size === 1 ? [...cards.values()][0] : null);
  pageKeys([['y', 'Answer yes', () => focused()?.yes()], ['n', 'Answer no', () => focused()?.no()]]);
  every(2000, signal, load);

  async function load() {
    let waiting;
    try {
      waiting = await waitingTasks();
    } catch (failure) {
      if (!signal.aborted && !cards.size && failure.status) fill(list, failureBox(failure, load));
      return;
    }
    if (signal.aborted) return;
    const present = new Set();
    for (const { task, agent } of waiting) {
      const key = task.id + (task.status.message?.messageId ?? '');
      present.add(key);
      if (!cards.has(key)) cards.set(key, make(task, agent));
    }
    for (const [key, card] of cards) {
      // An answer that is being written is not taken away.
      if (present.has(key) || card.isBusy()) continue;
      cards.delete(key);
      card.remove();
    }
    if (!cards.size) {
      if (!list.querySelector('.empty')) fill(list, emptyBox('Nobody waits', h('p', 'Questions of agents appear here by themselves. Try one: ', commandLine('sabir send --async ask Which day?'))));
    } else {
      list.querySelectorAll('.empty, .skeletons, .failure').forEach((box) => box.remove());
      for (const card of cards.values()) if (!card.isConnected) list.append(card);
    }
  }

  function make(task, agent) {
    const first = firstLine(asRow(task).message) || short(task.id);
    return questionCard(task.status.message, { task: task.id, context: task.contextId, agent, time: task.status.timestamp, isAuth: task.status.state.endsWith('AUTH_REQUIRED'), title: h('span.where',
      agent && h('a', { href: href(`/agents/${encodeURIComponent(agent)}`), class: 'agent' }, agent), h('a', { href: href(`/tasks/${encodeURIComponent(task.id)}`), class: 'cut' }, first)) });
  }
}

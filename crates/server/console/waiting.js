// Every open question of every agent, the oldest first, answered in place.

import { agentPage, asRow, taskPage, waitingTasks } from './api.js';
import { emptyBox, pageHead, refresh, skeleton } from './boxes.js';
import { commandLine } from './clipboard.js';
import { fill, h } from './dom.js';
import { firstLine, short } from './format.js';
import { pageKeys } from './keys.js';
import { questionCard, watchCards } from './question.js';

export function open({ main, signal, href }) {
  const list = h('div.questions', { 'aria-label': 'Open questions' }, skeleton(3));
  const cards = new Map();
  fill(main, pageHead('Waiting', h('p.sub', 'Agents that need an answer, the oldest question first.')), list);
  const { hold, keys } = watchCards(list, signal);
  pageKeys(keys);
  refresh(2000, signal, list, load);

  async function load() {
    const waiting = await waitingTasks();
    if (signal.aborted) return;
    const present = new Set();
    for (const { task, agent, number } of waiting) {
      let key = JSON.stringify([task.id, task.contextId, task.status.timestamp, task.status.message?.messageId]);
      // Ids need not be unique.
      while (present.has(key)) key += '+';
      present.add(key);
      if (!cards.has(key)) cards.set(key, make(task, agent, number));
    }
    for (const [key, card] of cards) {
      // An answer that is being written is not taken away.
      if (present.has(key) || card.isBusy()) continue;
      cards.delete(key);
      card.remove();
    }
    if (!cards.size) {
      if (!list.querySelector('.empty')) fill(list, emptyBox('Nobody waits', h('p', 'Questions of agents appear here by themselves. Try one: ', commandLine("sabir send --async 'ask Which day?'"))));
    } else {
      list.querySelectorAll('.empty, .skeletons').forEach((box) => box.remove());
      for (const card of cards.values()) if (!card.isConnected) list.append(card);
      // Where one card takes the place of another, no size changes.
      hold();
    }
  }

  function make(task, agent, number) {
    const first = firstLine(asRow(task).message) || short(task.id);
    return questionCard(task.status.message, { task: task.id, context: task.contextId, agent, time: task.status.timestamp, isAuth: task.status.state.endsWith('AUTH_REQUIRED'), title: h('span.where',
      agent && h('a', { href: href(agentPage(agent)), class: 'agent' }, agent), h('a', { href: href(taskPage({ id: task.id, number })), class: 'cut' }, first)) });
  }
}

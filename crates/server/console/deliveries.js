// Webhooks that have not arrived: by receiver, with what was tried and what to do. Rows change where they are: an attempt elsewhere
// takes neither the focus nor a question that waits for its answer.

import { admin, adminAct, readEvents } from './api.js';
import { emptyBox, limitedNote, pageHead, refresh, skeleton } from './boxes.js';
import { announce, button, confirmButton, fill, h, setText } from './dom.js';
import { ago, ahead, count, plural } from './format.js';
import { folded } from './parts.js';

const STATES = { 'given-up': 'dead', pending: 'pending' };
/** How many of each state are read and shown. */
const MOST = 500;

export function open({ id, main, signal, href }) {
  const list = h('div.receivers', skeleton());
  const notice = h('div', { role: 'alert' });
  const note = h('p.note', { hidden: true });
  const retryDead = button('', () => act('Retried', () => adminAct('deliveries/retry?state=given-up')), { hidden: true });
  const receivers = new Map();
  /** The states of which there are more than are shown. */
  let cut = [];
  fill(main, pageHead('Deliveries', h('div.actions', retryDead)), notice, note, list);
  const again = refresh(3000, signal, list, load);

  const atLeast = (state, number) => `${cut.includes(state) ? 'at least ' : ''}${count(number)} ${STATES[state]}`;

  async function load() {
    const states = Object.keys(STATES);
    // One more than is shown tells whether there are more.
    const pages = await Promise.all(states.map((state) => admin(`deliveries?state=${state}&limit=${MOST + 1}`)));
    if (signal.aborted) return;
    if (!pages[0]) return fill(list, limitedNote('deliveries'));
    cut = states.filter((state, index) => pages[index].deliveries.length > MOST);
    const found = pages.flatMap((page) => page.deliveries.slice(0, MOST));
    const dead = found.filter((one) => one.state === 'given-up').length;
    retryDead.hidden = dead === 0;
    setText(retryDead, `Retry all ${cut.includes('given-up') ? 'dead' : `${count(dead)} dead`}`);
    note.hidden = !cut.length;
    setText(note, `There are more ${cut.map((state) => STATES[state]).join(' and ')} deliveries than are counted here: the first ${MOST} of a state are shown.`);
    const byUrl = new Map();
    for (const one of found) byUrl.set(one.url, [...(byUrl.get(one.url) ?? []), one]);
    list.querySelectorAll('.empty, .skeletons').forEach((box) => box.remove());
    update(list, receivers, byUrl, receiverPanel);
    if (!found.length) {
      list.append(emptyBox('Nothing is waiting to be delivered', h('p', 'Webhooks that a receiver has not taken appear here, with what went wrong. Clients set them with a task; see ', h('code', 'sabir push'), '.')));
    }
  }

  /** Brings what a box shows in line with what is wanted, by key. What stays is not moved: it would lose the focus. */
  function update(box, shown, wanted, make) {
    for (const [key, { node }] of shown) {
      if (wanted.has(key)) continue;
      shown.delete(key);
      node.remove();
    }
    let next = box.firstChild;
    for (const [key, value] of wanted) {
      if (!shown.has(key)) shown.set(key, make(key));
      const { node, show } = shown.get(key);
      show(value);
      if (node === next) next = next.nextSibling;
      else box.insertBefore(node, next);
    }
  }

  async function act(words, call) {
    fill(notice);
    try {
      await call();
      announce(words);
    } catch (failure) {
      fill(notice, h('p.error-line', `That did not work: ${failure.message}.`));
    }
    await again();
  }

  function receiverPanel(url) {
    const counts = h('span.muted');
    const failing = timePlace('failing since ');
    const box = h('div.rows');
    const rows = new Map();
    let shown = [];
    const node = h('section.panel.receiver', { 'data-receiver': url }, h('header', h('h2.cut', { title: url }, url), counts, failing.node, h('span.spring'),
      button('Retry all', () => act('Retried', async () => {
        for (const state of new Set(shown.map((one) => one.state))) await adminAct(`deliveries/retry?${new URLSearchParams({ state, url })}`);
      }))), box);
    function show(ones) {
      shown = ones;
      const number = (state) => atLeast(state, ones.filter((one) => one.state === state).length);
      setText(counts, `${number('pending')}, ${number('given-up')}`);
      failing.show(ones.map((one) => one.since).filter(Boolean).sort()[0], ago);
      update(box, rows, new Map(ones.map((one) => [one.id, one])), deliveryRow);
    }
    return { node, show };
  }

  /** A time with words before it, which is written again only when it is another one. */
  function timePlace(words = '') {
    const node = h('span.muted');
    let shown;
    return { node, show(time, write) {
      if (time === shown) return;
      shown = time;
      fill(node, time && [words, write(time)]);
    } };
  }

  function deliveryRow(key) {
    let one;
    let readNumber;
    const reason = h('span.cut.message');
    const attempts = h('span.muted');
    const next = timePlace('next ');
    const since = timePlace();
    const inner = timePlace();
    const body = h('div.delivery-body');
    const isDead = key.startsWith('g');
    const node = h('details', { open: key === id }, h('summary', { 'data-row': true },
      h('span.state', { 'data-state': isDead ? 'failed' : 'working' }, h('span', isDead ? 'dead' : 'pending')),
      h('code', key), reason, attempts, next.node, since.node), body);
    const number = () => one.event ?? (one.sent ?? 0) + 1;
    const task = h('a');
    const error = h('span');
    const heading = h('h3');
    const event = h('div');
    function make() {
      const pairs = { Task: task, Agent: one.agent, Webhook: one.config, 'Last error': error, Since: inner.node };
      fill(body, h('dl.pairs', Object.entries(pairs).map(([name, value]) => [h('dt', name), h('dd', value)])), heading, event,
        h('div.row', button('Retry now', () => act('Retried', () => adminAct(`deliveries/${key}/retry`))),
          confirmButton('Drop', 'Yes, drop it', () => act('Dropped', () => adminAct(`deliveries/${key}`, 'DELETE')))));
    }
    function showBody() {
      if (!node.open) return;
      if (!body.firstChild) make();
      setText(task, one.task);
      task.href = href(`/tasks/${encodeURIComponent(one.task)}?no=${one.taskNumber}&from=${number()}`);
      setText(error, one.reason ?? 'none');
      inner.show(one.since, ago);
      setText(heading, `The event it has to send (${number()})`);
      if (readNumber !== number()) readEvent(number());
    }
    async function readEvent(wanted) {
      readNumber = wanted;
      fill(event, skeleton(1));
      const shown = await readEvents(one.task, wanted - 1, wanted, signal).then(([found]) => (found ? folded(found, 'event') : 'It is not stored any more.'),
        (failure) => h('p.muted', `It cannot be read: ${failure.message}.`));
      if (readNumber === wanted) fill(event, shown);
    }
    function show(now) {
      one = now;
      setText(reason, one.reason ?? 'not tried yet');
      setText(attempts, plural(one.attempts ?? 0, 'attempt'));
      next.show(one.next, ahead);
      since.show(one.next ? undefined : one.since, ago);
      showBody();
    }
    node.addEventListener('toggle', showBody);
    return { node, show };
  }
}

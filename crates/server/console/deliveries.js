// Webhooks that have not arrived: by receiver, with what was tried and what to do.

import { admin, adminAct, readEvents } from './api.js';
import { emptyBox, limitedNote, pageHead, refresh, skeleton } from './boxes.js';
import { announce, button, confirmButton, fill, h } from './dom.js';
import { ago, ahead, plural } from './format.js';
import { folded } from './parts.js';

export function open({ id, main, signal, href, go }) {
  const list = h('div.receivers', skeleton());
  const notice = h('div', { role: 'alert' });
  const all = h('div.actions');
  const opened = new Set(id ? [id] : []);
  let shown = '';
  fill(main, pageHead('Deliveries', all), notice, list);
  const again = refresh(3000, signal, list, load);

  async function load() {
    const pages = await Promise.all(['given-up', 'pending'].map((state) => admin(`deliveries?state=${state}&limit=500`)));
    if (signal.aborted) return;
    if (!pages[0]) return fill(list, limitedNote('deliveries'));
    const found = pages.flatMap((page) => page.deliveries);
    const key = JSON.stringify(found);
    // Nothing is drawn again under the pointer unless something has changed.
    if (key === shown) return;
    shown = key;
    const receivers = found.reduce((map, one) => map.set(one.url, [...(map.get(one.url) ?? []), one]), new Map());
    const dead = found.filter((one) => one.state === 'given-up').length;
    fill(all, dead > 0 && button(`Retry all ${dead} dead`, () => act('Retried', () => adminAct('deliveries/retry?state=given-up'))));
    fill(list, found.length ? [...receivers].map(([url, ones]) => receiver(url, ones))
      : emptyBox('Nothing is waiting to be delivered', h('p', 'Webhooks that a receiver has not taken appear here, with what went wrong. Clients set them with a task; see ', h('code', 'sabir push'), '.')));
  }

  async function act(words, call) {
    fill(notice);
    try {
      await call();
      announce(words);
    } catch (failure) {
      fill(notice, h('p.error-line', `That did not work: ${failure.message}.`));
    }
    shown = '';
    await again();
  }

  function receiver(url, ones) {
    const dead = ones.filter((one) => one.state === 'given-up');
    const since = ones.map((one) => one.since).filter(Boolean).sort()[0];
    return h('section.panel.receiver', { 'data-receiver': url }, h('header', h('h2.cut', { title: url }, url),
      h('span.muted', `${plural(ones.length - dead.length, 'pending', 'pending')}, ${dead.length} dead`), since && h('span.muted', 'failing since ', ago(since)), h('span.spring'),
      button('Retry all', () => act('Retried', async () => {
        for (const state of new Set(ones.map((one) => one.state))) await adminAct(`deliveries/retry?${new URLSearchParams({ state, url })}`);
      }))), h('div.rows', ones.map(delivery)));
  }

  function delivery(one) {
    const body = h('div.delivery-body');
    const number = one.event ?? (one.sent ?? 0) + 1;
    const details = h('details', { open: opened.has(one.id) }, h('summary', { 'data-row': true },
      h('span.state', { 'data-state': one.state === 'pending' ? 'working' : 'failed' }, h('span', one.state === 'pending' ? 'pending' : 'dead')),
      h('code', one.id), h('span.cut.message', one.reason ?? 'not tried yet'), h('span.muted', plural(one.attempts ?? 0, 'attempt')),
      one.next ? h('span.muted', 'next ', ahead(one.next)) : ago(one.since)), body);
    const show = () => {
      if (details.open) opened.add(one.id);
      else opened.delete(one.id);
      if (!details.open || body.firstChild) return;
      const event = h('div', skeleton(1));
      const pairs = { Task: one.task && h('a', { href: href(`/tasks/${encodeURIComponent(one.task)}?from=${number}`) }, one.task), Agent: one.agent, Webhook: one.config, 'Last error': one.reason, Since: one.since && ago(one.since), Attempts: one.attempts };
      fill(body, h('dl.pairs', Object.entries(pairs).filter(([, value]) => value !== undefined).map(([name, value]) => [h('dt', name), h('dd', value)])),
        h('h3', `The event it has to send (${number})`), event,
        h('div.row', button('Retry now', () => act('Retried', () => adminAct(`deliveries/${one.id}/retry`))),
          confirmButton('Drop', 'Yes, drop it', () => act('Dropped', () => adminAct(`deliveries/${one.id}`, 'DELETE')))));
      readEvents(one.task, number - 1, number, signal).then(([found]) => fill(event, found ? folded(found, 'event') : 'It is not stored any more.'),
        (failure) => fill(event, h('p.muted', `It cannot be read: ${failure.message}.`)));
    };
    details.addEventListener('toggle', show);
    if (details.open) show();
    return details;
  }
}

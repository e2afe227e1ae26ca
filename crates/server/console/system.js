// The server itself: what runs, where tasks are kept, how near the limits are, and every setting with its origin.

import { admin, card, json } from './api.js';
import { limitedNote, pageHead, refresh, skeleton } from './boxes.js';
import { copyButton } from './clipboard.js';
import { fill, h } from './dom.js';
import { bytes, count, span } from './format.js';
import { badge, STATES } from './state.js';

export function open({ main, signal, href }) {
  const overview = h('div.panels', skeleton(8));
  const nodes = h('section');
  const settings = h('section');
  fill(main, pageHead('System'), overview, nodes, settings);
  refresh(3000, signal, overview, load);
  showSettings();

  async function load() {
    const [system, cluster] = await Promise.all([admin('system'), admin('nodes')]);
    if (signal.aborted) return;
    if (system) fill(overview, panels(system));
    else await loadPublic();
    fill(nodes, cluster?.nodes?.length > 0 && [h('h2', 'Nodes'), nodeTable(cluster.nodes)]);
  }

  /** What everybody may know. */
  async function loadPublic() {
    const [ready, about] = await Promise.all([json('readyz').catch((failure) => ({ status: failure.message })), card('', '1.0')]);
    fill(overview, panel('Server', { Health: ready.status, Card: about.name, Version: about.version }), limitedNote('store, nodes, limits and settings'));
  }

  const panel = (name, pairs, ...more) => h('section.panel', h('h2', name),
    h('dl.pairs', Object.entries(pairs).filter(([, value]) => value !== undefined && value !== '').map(([key, value]) => [h('dt', key), h('dd', value)])), more);

  function panels({ store = {}, tasks = {}, memory = {}, deliveries = {}, limits = [], ...system }) {
    return [
      panel('Server', { Version: [system.version, system.commit && ` (${system.commit})`], Health: system.health, Up: span(system.uptime * 1000), Addresses: (system.urls ?? []).join(', '),
        Callers: system.auth ? 'need credentials' : 'need no credentials', Process: String(system.pid ?? ''), Node: system.node, Memory: memory.resident && `${bytes(memory.resident)} resident` }),
      panel('Store', { Kind: store.kind, Place: h('span.breaks', store.place ?? ''), Size: bytes(store.bytes), Durability: store.durability, Format: store.format && String(store.format) }),
      panel('Now', { Streams: count(system.streams), Connections: count(system.connections), Deliveries: h('a', { href: href('/deliveries') }, `${count(deliveries.pending)} pending, ${count(deliveries.givenUp)} dead`), Tasks: count(tasks.total) },
        h('p.states', STATES.filter((state) => tasks[state]).map((state) => h('a', { href: href(`/tasks?state=${state}`) }, badge(state), ` ${count(tasks[state])}`)))),
      limits.length > 0 && h('section.panel', h('h2', 'Limits'), limits.map(limitRow)),
    ];
  }

  function limitRow({ name, used = 0, limit }) {
    const share = limit ? Math.min(1, used / limit) : 0;
    const bar = h('span', { class: `fill ${share > 0.9 ? 'high' : share > 0.7 ? 'near' : ''}` });
    bar.style.width = `${Math.max(share * 100, used ? 1 : 0)}%`;
    const write = /memory|bytes|size/.test(name) ? bytes : count;
    return h('div.limit', { role: 'meter', 'aria-label': name, 'aria-valuenow': used, 'aria-valuemin': 0, 'aria-valuemax': limit },
      h('span.cut', name), h('span.bar', bar), h('span.muted', `${write(used)} of ${limit ? write(limit) : '∞'}`));
  }

  const nodeTable = (all) => h('div.wide', h('table', h('thead', h('tr', ['Node', 'State', 'Version', 'Up', 'Last beat', 'Working', 'Waiting', 'Queued', 'Notifications'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', all.map((node) => h('tr', h('td', h('b', node.name), node.this && ' (this one)'), h('td', { class: node.state }, node.state), h('td', node.version), h('td', span(node.up * 1000)),
      h('td', `${span(node.last_beat * 1000)} ago`), [node.working, node.parked, node.queued].map((number) => h('td', count(number))), h('td', node.notifications))))));

  async function showSettings() {
    const answer = await admin('config').catch(() => null);
    if (signal.aborted || !answer) return;
    const body = h('tbody', answer.settings.map((one) => h('tr', { class: one.origin === 'default' ? 'default' : '' },
      h('td', h('code', one.name)), h('td.breaks', one.value === null ? 'not set' : Array.isArray(one.value) ? one.value.join(', ') : typeof one.value === 'object' ? JSON.stringify(one.value) : String(one.value)), h('td.muted', one.origin))));
    const field = h('input', { type: 'search', placeholder: 'Find a setting', 'aria-label': 'Find a setting', oninput: () => {
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(field.value.toLowerCase());
    } });
    fill(settings, h('header.section', h('h2', 'Configuration in force'), field, copyButton(() => JSON.stringify(answer, null, 2), 'Copy as JSON')),
      h('div.wide', h('table.settings', h('thead', h('tr', ['Setting', 'Value', 'From'].map((name) => h('th', { scope: 'col' }, name)))), body)));
  }
}

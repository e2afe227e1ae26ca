// The agents: what they can do, how busy they are, their cards in each dialect, and a form to try them.

import { adminRefusal, agentPage, agents, card, taskPage } from './api.js';
import { emptyBox, failureBox, limitedNote, pageHead, refresh, skeleton } from './boxes.js';
import { copyButton } from './clipboard.js';
import { button, fill, h, setText } from './dom.js';
import { plural, span } from './format.js';
import { link } from './markdown.js';
import { pageKeys } from './keys.js';
import { sendForm } from './send_form.js';

const FORMATS = [['all versions', undefined], ['1.0', '1.0'], ['0.3', '0.3'], ['0.1', '0.1']];

export function open(context) {
  return context.id ? openOne(context) : openAll(context);
}

function openAll({ main, signal, href, go }) {
  const list = h('ul.rows.agents', skeleton(3));
  const note = h('div');
  const rows = new Map();
  fill(main, pageHead('Agents'), note, list);
  refresh(3000, signal, list, async () => {
    const all = await agents();
    if (signal.aborted) return;
    if (all.length === 1 && !rows.size && history.state !== 'list') return go(agentPage(all[0].id), true);
    if (!rows.size) fill(list, all.length ? null : emptyBox('No agents', h('p', 'The configuration lists no agent that you may see.')));
    if (adminRefusal || all[0]?.kind === undefined) fill(note, limitedNote('how busy the agents are'));
    for (const agent of all) {
      if (!rows.has(agent.id)) {
        const words = h('span.cut.message');
        const load = h('span.load');
        rows.set(agent.id, load);
        list.append(h('li', h('a.row', { 'data-row': true, 'data-agent': agent.id, href: href(agentPage(agent.id)) },
          h('b.agent.cut', agent.id), words, agent.kind && h('span.tag', agent.kind), load)));
        card(agent.id, '1.0').then((about) => setText(words, `${about.name}. ${about.description ?? ''}`), () => {});
      }
      setText(rows.get(agent.id), loadText(agent));
    }
  });
}

const loadText = (agent) => (agent.running === undefined ? '' : [
  `${agent.running} of ${agent.limit ?? '∞'} running`, agent.parked ? `${agent.parked} waiting` : '', agent.queued ? `${agent.queued} queued${agent.oldestQueued ? `, the oldest for ${span(agent.oldestQueued * 1000)}` : ''}` : '',
].filter(Boolean).join(' · '));

async function openOne({ id, main, signal, href, go, title }) {
  title(id);
  const load = h('p.sub.load');
  const busy = h('div');
  const body = h('div.agent-page', skeleton());
  fill(main, h('header.page', h('div', h('a.crumb', { href: href('/agents') }, 'Agents'), h('h1', id), load),
    h('div.actions', h('a.button', { href: href(`/tasks?agent=${encodeURIComponent(id)}`) }, 'Its tasks'))), busy, body);
  refresh(3000, signal, busy, async () => {
    const one = (await agents()).find((agent) => agent.id === id);
    if (one) setText(load, [one.kind, loadText(one), one.default && 'messages that name no agent go here'].filter(Boolean).join(' · '));
  });
  let about;
  try {
    about = await card(id, '1.0');
  } catch (failure) {
    if (!signal.aborted) fill(body, failure.status === 404 ? emptyBox('There is no such agent', h('a', { href: href('/agents') }, 'All agents')) : failureBox(failure, () => go(agentPage(id), true)));
    return;
  }
  if (signal.aborted) return;
  const skills = about.skills ?? [];
  const examples = [...new Set(skills.flatMap((skill) => skill.examples ?? []))].slice(0, 8);
  const form = sendForm({ agent: id }, { examples, label: `Message to ${id}`, withCommand: true }, (task) => go(taskPage(task)));
  const json = h('pre.code.card');
  let copied = '';
  const tabs = FORMATS.map(([label, version]) => button(label, async (event) => {
    for (const tab of tabs) tab.setAttribute('aria-pressed', tab === event.target);
    copied = JSON.stringify(await card(id, version).catch((failure) => failure.message), null, 2);
    setText(json, copied);
  }, { 'aria-pressed': 'false', 'data-card': label }));
  fill(body, h('section.panel', h('h2', 'Send a message'), form),
    h('section', h('h2', about.name), h('p', about.description),
      h('dl.pairs', pair('Version', about.version), pair('Provider', about.provider && link(about.provider.url, about.provider.organization)),
        pair('Reads', about.defaultInputModes?.join(', ')), pair('Writes', about.defaultOutputModes?.join(', ')),
        pair('Offers', [about.capabilities?.streaming && 'streams', about.capabilities?.pushNotifications && 'webhooks', about.capabilities?.extendedAgentCard && 'extended card'].filter(Boolean).join(', ')),
        pair('Addresses', about.supportedInterfaces?.map((one) => h('div', h('code', one.url), ` ${one.protocolBinding} ${one.protocolVersion}`))))),
    h('section', h('h2', plural(skills.length, 'skill')), skills.map((skill) => h('article.skill', h('h3', skill.name), h('p', skill.description),
      h('p', (skill.tags ?? []).map((tag) => h('span.tag', tag)))))),
    h('section', h('h2', 'The card as JSON'), h('div.row', tabs, h('span.spring'), copyButton(() => copied)), json));
  pageKeys([['m', 'Write a message', () => form.focusField()]]);
  tabs[0].click();
}

const pair = (name, value) => (value?.length === 0 || !value ? null : [h('dt', name), h('dd', value)]);

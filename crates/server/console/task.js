// One task: its life as a timeline, what is known of it, and what one can do with it.

import { Failure, agentPage, agents, asRow, cancelByNumber, cancelTask, json, lastEvent, readTask, taskFacts, taskPage, tasksWithId, untilAnswered, webhooksOf } from './api.js';
import { emptyBox, failureBox, showDialog, skeleton } from './boxes.js';
import { commandLine, copyButton } from './clipboard.js';
import { announce, button, confirmButton, fill, h, setText } from './dom.js';
import { ago, bytes, count, firstLine, plural, short, span } from './format.js';
import { showFrames } from './frames.js';
import { spelled } from './hidden_letters.js';
import { pageKeys } from './keys.js';
import { artifactDownload, costOf, costText, renderParts, sizeOf } from './parts.js';
import { questionCard, watchCards } from './question.js';
import { sendForm } from './send_form.js';
import { copyMenu, followRequest, watchCommand } from './snippets.js';
import { badge, isOver, isWaiting, ofA2a } from './state.js';
import { Timeline } from './timeline.js';
import { bubble } from './timeline_rows.js';

/** A task with more than this is read whole only when somebody asks for it. */
const MOST_BYTES = 64_000_000;

export function open({ id, query, main, signal, href, go, title }) {
  const known = { id, state: '' };
  // The agent becomes known after the page is there.
  const sameContext = { get agent() { return known.agent; }, get context() { return known.context; } };
  const thisTask = { get agent() { return known.agent; }, get context() { return known.context; }, task: id };
  // How A2A calls name it; the agent is there where the id alone is not enough.
  const named = { id };
  const number = Number(query.get('no')) || undefined;
  let isHidden = false;
  let isFound = false;
  let whole = null;
  const path = (more) => `/tasks/${encodeURIComponent(id)}?${new URLSearchParams({ ...number && { no: number }, ...more })}`;
  const state = badge('');
  const heading = h('h1', short(id));
  const about = h('p.sub', h('code.id', id), copyButton(id));
  const cancel = confirmButton('Cancel', 'Yes, cancel it', async () => {
    try {
      if (known.number) await cancelByNumber(known.number);
      else show(asRow(await cancelTask(named)));
      announce('Canceled');
      if (known.number) await read();
    } catch (failure) {
      fill(notice, h('p.error-line', `Not canceled: ${failure.message}.`));
    }
  }, { title: 'Cancel this task (c)' });
  const raw = (number) => showFrames(named, timeline.total, number, (at) => {
    const url = new URL(location);
    if (at) url.searchParams.set('raw', at);
    else url.searchParams.delete('raw');
    history.replaceState(null, '', url);
  });
  const actions = h('div.actions', cancel, button('Raw frames', () => raw(Math.max(1, timeline.total - 9)), { title: 'Frames in every dialect (r)' }),
    copyMenu(() => followRequest(named, 0)));
  const notice = h('div', { role: 'alert' });
  const wait = h('p.muted', { role: 'status' });
  const facts = h('aside.facts', { 'aria-label': 'Facts' }, skeleton(8));
  const composer = h('section.composer');
  const hooks = {
    from: (number) => href(path({ from: number })), raw: (number) => href(path({ raw: number })),
    goTo: (number) => go(path({ from: number })), artifact: showArtifact, onEvent, onRows,
    // Admin calls know how long a task is; without them the server is asked for an event that cannot be there.
    total: async () => (await taskFacts(id, known.number))?.events ?? lastEvent(named, signal),
    onWait: (failure) => setText(wait, failure ? `Trying again: ${failure.message}.` : ''),
    onError: (failure) => fill(notice, failureBox(failure, () => go(location.pathname.slice(href('').length) + location.search, true))),
  };
  const timeline = new Timeline(named, signal, hooks);
  timeline.list.addEventListener('click', (event) => {
    const link = event.target.closest('[data-raw]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    raw(Number(link.dataset.raw));
  });
  fill(main, h('header.page.task', h('div', h('a.crumb', { href: href('/tasks') }, 'Tasks'), h('div.line', state, heading), about), actions), notice, wait,
    h('div.task-grid', h('div', timeline.element, composer), facts));

  const cards = watchCards(timeline.list, signal);
  pageKeys([
    ['c', 'Cancel this task', () => cancel.hidden || cancel.ask()], ...cards.keys,
    ['m', 'Write a message', () => main.querySelector('.question textarea, #message')?.focus()], ['r', 'Raw frames', () => raw(Math.max(1, timeline.total - 9))],
    ['f', 'Follow the end', () => timeline.toEnd()],
    ['x', 'Fold or unfold tool calls', () => {
      const all = [...timeline.list.querySelectorAll('details')];
      const isOpen = all.some((details) => details.open);
      for (const details of all) details.open = !isOpen;
    }],
  ]);

  const from = Number(query.get('from')) || undefined;
  const asked = untilAnswered(signal, findTask, hooks.onWait);
  const opening = asked.catch((failure) => { if (failure.status === 409) throw failure; }).then((admin) => {
    hooks.onWait(null);
    return isHidden || timeline.open(from, admin?.events);
  });
  opening.then(() => {
    if (query.get('raw') && !isHidden) raw(Number(query.get('raw')));
  }, (failure) => {
    if (signal.aborted) return;
    if (failure.status === 409) chooseTask();
    else if (failure.status === 404) {
      fill(main, emptyBox('There is no such task', h('p', 'No task that you may see has the id ', h('code', id), '. It may have been deleted by retention.'),
        h('p', h('a', { href: href('/tasks') }, 'All tasks'))));
    } else hooks.onError(failure);
  });
  read(asked);
  const clock = setInterval(showDuration, 1000);
  signal.addEventListener('abort', () => clearInterval(clock));

  /** What admin calls know; null: there are none. */
  async function findTask() {
    const only = await Promise.resolve(taskFacts(id)).catch((failure) => {
      if (failure.status !== 409 || !number) throw failure;
    });
    if (only === null || (only && (!number || only.number === number))) return only;
    const facts = await taskFacts(id, number);
    if (!facts) throw new Failure(404, 'there is no such task');
    named.agent = facts.agent;
    // A2A calls know no numbers, and find the caller's own task first.
    const { context, statusTime } = asRow(await readTask(named, signal).catch(() => ({ status: {} })));
    isHidden = context !== facts.context || statusTime !== facts.statusTime;
    if (isHidden) {
      fill(actions, cancel);
      timeline.element.hidden = composer.hidden = true;
      fill(notice, h('p.note', `A2A calls reach another task with this id. Of this one, of ${facts.owner}, only the facts are shown.`));
    }
    return facts;
  }

  async function chooseTask() {
    const tasks = await untilAnswered(signal, () => tasksWithId(id)).catch(() => []);
    if (signal.aborted) return;
    fill(main, emptyBox('Several tasks have this id', tasks.map((task) => h('p',
      h('a', { href: href(taskPage(task)) }, `${task.number}: ${firstLine(task.message) || short(id)}`), ` of ${task.owner}, agent ${task.agent}, ${task.state}`))));
  }

  /** What the admin calls know, then the whole task. */
  async function read(asked) {
    try {
      await untilAnswered(signal, async () => {
        const admin = await (asked ?? taskFacts(id, known.number));
        if (signal.aborted) return;
        isFound = true;
        show(admin ?? {});
        if (!isHidden && !(admin?.bytes > MOST_BYTES)) await readWhole();
        if (!known.agent) await findAgent();
        if (!signal.aborted) showFacts();
      }, hooks.onWait);
      hooks.onWait(null);
    } catch (failure) {
      if (!signal.aborted && ![0, 404, 409].includes(failure.status)) hooks.onError(failure);
    }
  }

  async function readWhole() {
    whole = await readTask(named, signal);
    const row = asRow(whole);
    show({ ...row, agent: known.agent, message: row.message || known.message });
    showAnswers();
    return whole;
  }

  /** A2A does not say whose task it is; the agent's own list does. */
  async function findAgent() {
    const all = await agents();
    if (all.length === 1) return show({ agent: all[0].id });
    for (const { id: agent } of all) {
      const page = await json(`agents/${encodeURIComponent(agent)}/tasks?contextId=${encodeURIComponent(known.context)}&pageSize=100&historyLength=0`);
      if (page.tasks.some((task) => task.id === id)) return show({ agent });
    }
  }

  function show(next) {
    const before = known.state;
    for (const [name, value] of Object.entries(next)) if (value !== undefined) known[name] = value;
    state.show(known.state);
    // Before the facts are there it is not known which task would be canceled.
    cancel.hidden = !isFound || !known.state || isOver(known.state);
    const words = firstLine(known.message) || short(id);
    setText(heading, words);
    heading.title = spelled(known.message ?? '');
    title(`${known.state ? `${known.state}: ` : ''}${words.slice(0, 60)}`);
    if (before !== known.state) {
      if (before) announce(`The task is ${known.state}`);
      showComposer();
    }
    showFacts();
  }

  function onEvent(event) {
    const status = (event.statusUpdate ?? event.task)?.status;
    if (!status) return;
    const before = known.state;
    show({ state: ofA2a(status.state), statusTime: status.timestamp });
    // What callers have said is in the history, not among the events.
    if (isWaiting(before) || isOver(known.state)) refresh();
  }

  let refreshing;
  function refresh() {
    clearTimeout(refreshing);
    refreshing = setTimeout(() => signal.aborted || read(), 150);
  }

  function onRows() {
    const last = timeline.lastStatusRow();
    timeline.fillIn((row) => {
      if (!row.close) return;
      const isAsked = row === last && isWaiting(row.state) && !isOver(known.state);
      if (isAsked && !row.card) {
        row.card = questionCard(row.message, Object.assign(Object.create(thisTask), { isAuth: row.state === 'auth-required' }), refresh);
        fill(row.body, row.card);
      } else if (!isAsked && row.card && !row.card.isWritten()) {
        row.card = null;
        row.close();
      }
    });
    cards.hold();
    showAnswers();
    const unseen = isWaiting(known.state) && timeline.isDetached;
    if (unseen !== (composed === 'unseen')) showComposer();
    showFacts();
  }

  /** What callers have answered stands below the question it followed. */
  function showAnswers() {
    if (!whole) return;
    const after = new Map();
    let anchor = null;
    for (const message of whole.history ?? []) {
      if (message.role !== 'ROLE_USER') anchor = message.messageId;
      else after.set(anchor, [...(after.get(anchor) ?? []), message]);
    }
    timeline.fillIn((row) => {
      const messages = row.kind === 'created' ? (after.get(null) ?? []).filter((message) => !row.messages.has(message.messageId)) : row.messageId && after.get(row.messageId);
      if (!messages?.length || row.card || row.attached === messages.length) return;
      row.attached = messages.length;
      row.node.querySelector('.attached')?.remove();
      row.node.querySelector('.content').append(h('div.attached', messages.map(bubble)));
    });
  }

  let composed;
  function showComposer() {
    const unseen = isWaiting(known.state) && timeline.isDetached;
    const form = unseen ? 'unseen' : isWaiting(known.state) ? 'question' : isOver(known.state) ? 'over' : 'open';
    if (composed === form) return;
    composed = form;
    if (form === 'unseen') fill(composer, h('p.note', 'The task waits for an answer. ', button('Go to the question', () => timeline.toEnd())));
    else if (form === 'question' || !known.state) fill(composer);
    else if (form === 'over') {
      fill(composer, h('h2', 'Follow up'), sendForm(sameContext, { label: 'A new task in the same context' },
        (task) => go(taskPage(task))));
    } else {
      fill(composer, h('h2', 'Next message'), sendForm(thisTask, { label: 'The next message to this task' },
        () => refresh()));
    }
  }

  const duration = h('span');
  const events = h('span');
  function showDuration() {
    if (!known.created) return;
    const end = isOver(known.state) ? Date.parse(known.statusTime) : Date.now();
    setText(duration, span(end - Date.parse(known.created)));
  }

  let shown = '';
  let around = null;
  async function showFacts() {
    if (!known.state) return;
    known.created ??= timeline.rows.find((row) => row.first === 1)?.node.querySelector('time')?.dateTime;
    setText(events, count(Math.max(known.events ?? 0, timeline.total)));
    const cost = whole && costOf([...(whole.artifacts ?? []), whole.status.message, ...(whole.history ?? [])]);
    if (known.context && !around) {
      around = { tasks: [], webhooks: null };
      loadAround();
    }
    const key = JSON.stringify([{ ...known, events: 0 }, around, cost, whole?.artifacts?.map((artifact) => [artifact.artifactId, artifact.parts?.length])]);
    showDuration();
    if (key === shown) return;
    shown = key;
    const fact = (name, ...value) => (value.flat().some((one) => one !== undefined && one !== null && one !== '' && one !== false) ? [h('dt', name), h('dd', value)] : null);
    const others = around?.tasks.filter((task) => task.id !== id) ?? [];
    fill(facts, h('dl',
      fact('State', badge(known.state), known.statusTime && ago(known.statusTime)),
      fact('Agent', known.agent && h('a', { href: href(agentPage(known.agent)) }, known.agent)),
      fact('Task', h('code.id', { title: id }, short(id)), copyButton(id)),
      fact('Context', known.context && [h('code.id', { title: known.context }, short(known.context)), copyButton(known.context)]),
      fact('Owner', known.owner), fact('Node', known.node), fact('Waits for', known.waitsFor),
      fact('Created', known.created && [new Date(known.created).toLocaleTimeString(), ago(known.created)]),
      fact('Duration', known.created && duration), fact('Events', events), fact('Size', bytes(known.bytes)),
      fact('Cost', cost && [costText(cost), cost.ms > 0 && `, ${span(cost.ms)}`]), fact('Born as', known.dialect),
      fact('Webhooks', around?.webhooks?.length ? around.webhooks.map((hook) => h('div.cut', { title: hook.url }, hook.url)) : around?.webhooks && 'none')),
    artifactList(),
    others.length > 0 && [h('h2', 'Same context'), h('ul.others', others.slice(0, 6).map((task) => h('li',
      badge(ofA2a(task.status.state)), h('a', { href: href(taskPage(task)), class: 'cut' }, firstLine(asRow(task).message) || short(task.id))))),
    h('a', { href: href(`/tasks?context=${encodeURIComponent(known.context)}`) }, `All tasks of this context (${count(around.total)})`)],
    h('h2', 'On the command line'), commandLine(watchCommand(id)));
  }

  async function loadAround() {
    const [page, webhooks] = await Promise.all([
      json(`tasks?contextId=${encodeURIComponent(known.context)}&pageSize=7&historyLength=5`).catch(() => null), isHidden ? null : webhooksOf(named).catch(() => null)]);
    around = { tasks: page?.tasks ?? [], total: page?.totalSize ?? 0, webhooks };
    if (!signal.aborted) showFacts();
  }

  function artifactList() {
    if (!whole) return known.bytes > MOST_BYTES && [h('h2', 'Artifacts'), button(`Read them (${bytes(known.bytes)})`, async () => { await readWhole(); showFacts(); })];
    const all = whole.artifacts ?? [];
    return all.length > 0 && [h('h2', plural(all.length, 'artifact')), h('ul.artifacts', all.map((artifact) => h('li',
      button(artifact.name || 'artifact', () => showArtifact(artifact.artifactId), { class: 'link cut' }),
      h('span.muted', bytes(sizeOf(artifact))), artifactDownload(artifact))))];
  }

  async function showArtifact(artifactId) {
    try {
      const task = isOver(known.state) && whole ? whole : await readWhole();
      const artifact = task.artifacts?.find((one) => one.artifactId === artifactId);
      if (!artifact) throw new Failure(404, 'the task has no such artifact now');
      const joined = artifact.parts.every((part) => part.text !== undefined) ? [{ ...artifact.parts[0], text: artifact.parts.map((part) => part.text).join('') }] : artifact.parts;
      showDialog(artifact.name || 'Artifact', { class: 'artifact' }, artifact.description && h('p.muted', artifact.description),
        h('div.row', h('span.muted', bytes(sizeOf(artifact))), artifactDownload(artifact)), renderParts(joined));
    } catch (failure) {
      hooks.onError(failure);
    }
  }
}

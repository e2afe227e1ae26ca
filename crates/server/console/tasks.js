// The list of tasks: live, filtered, counted. Rows change where they are; new ones come in at the top only when one looks there.

import { agents, countTasks, listTasks, readTask, asRow, taskFacts } from './api.js';
import { emptyBox, failureBox, limitedNote, pageHead, skeleton } from './boxes.js';
import { commandLine } from './clipboard.js';
import { every } from './connection.js';
import { announce, button, fill, h, setText } from './dom.js';
import { age, ago, count, firstLine, plural, short, span } from './format.js';
import { badge, GROUPS, isOver, STATES } from './state.js';

const SINCE = { '': 'any time', '1h': 'last hour', today: 'today', '7d': 'last 7 days' };
const FILTERS = ['state', 'agent', 'context', 'since', 'id'];

export function open({ query, main, signal, href, go }) {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? '']));
  localStorage.setItem('sabir.filter', location.search);
  const rows = new Map();
  let fresh = [];
  let after;
  let isFirst = true;
  let counted = false;

  const change = (next) => {
    const all = Object.entries({ ...filter, ...next }).filter(([, value]) => value);
    go(`/tasks${all.length ? `?${new URLSearchParams(all)}` : ''}`);
  };
  const search = h('input', { type: 'search', placeholder: 'Task id', 'aria-label': 'Search by task id', value: filter.id });
  const agentChoice = select('agent', [['', 'all agents'], ...(filter.agent ? [[filter.agent, filter.agent]] : [])]);
  const counts = h('p.counts', { 'aria-label': 'Tasks by state' });
  const note = h('div');
  const list = h('ul.rows.tasks', { 'aria-label': 'Tasks' });
  const more = button('Load more', () => load(after), { hidden: true, class: 'edge' });
  const newer = button('', showFresh, { class: 'newer', hidden: true });
  fill(main, pageHead('Tasks', h('form.filters', { role: 'search', onsubmit: (event) => {
    event.preventDefault();
    // An id is looked for among all tasks.
    change({ state: '', agent: '', context: '', since: '', id: search.value.trim() });
  } }, search, select('state', [['', 'all states'], ['open', 'open'], ['waiting', 'waiting'], ...STATES.map((state) => [state, state])]), agentChoice, select('since', Object.entries(SINCE)),
  filter.context && button(`context ${short(filter.context)} ×`, () => change({ context: '' }), { class: 'chip', title: 'Show all contexts' }))), counts, note, newer, skeleton(10));
  if (query.has('search')) search.focus();

  function select(name, options) {
    return h('select', { 'aria-label': name, onchange: (event) => change({ [name]: event.target.value }) },
      options.map(([value, label]) => h('option', { value, selected: filter[name] === value }, label)));
  }

  agents().then((all) => all.filter((agent) => agent.id !== filter.agent).forEach((agent) => agentChoice.append(h('option', { value: agent.id }, agent.id))), () => {});
  every(2000, signal, () => load());
  every(10_000, signal, () => counted || showCounts());

  async function load(cursor) {
    try {
      const page = await listTasks(filter, cursor);
      if (signal.aborted) return;
      if (filter.id && page.tasks[0]?.id === filter.id) return go(`/tasks/${encodeURIComponent(filter.id)}`, true);
      if (isFirst || cursor) after = page.after;
      if (page.counts) {
        counted = true;
        showCounts(page.counts);
      }
      take(page, Boolean(cursor));
      if (filter.state && !cursor) await lookAtLeavers(new Set(page.tasks.map((task) => task.id)));
    } catch (failure) {
      if (signal.aborted || failure.status === 0 || failure.status === 401) return;
      if (isFirst) fill(main.querySelector('.skeletons, .failure, .rows') ? note : main, failureBox(failure, () => { fill(note); load(); }));
    }
  }

  function take(page, isOlder) {
    const unknown = page.tasks.filter((task) => !update(task));
    if (isFirst) {
      isFirst = false;
      main.querySelector('.skeletons')?.remove();
      main.append(list, more);
      fill(note, page.limited ? h('p.note', page.limited) : page.isLimited && limitedNote('durations, owners and search by a part of an id'));
      list.append(...unknown.map(add));
    } else if (isOlder) list.append(...unknown.map(add));
    else if (unknown.length) {
      fresh = unknown;
      // Whoever has scrolled down reads something; it stays where it is.
      if (window.scrollY < 40 && !list.contains(document.activeElement)) showFresh();
      else {
        setText(newer, `${plural(fresh.length, 'new task')}`);
        newer.hidden = false;
      }
    }
    more.hidden = !after;
    showEmpty();
  }

  function showFresh() {
    const made = fresh.filter((task) => !rows.has(task.id)).map(add);
    for (const node of made) node.classList.add('fresh');
    list.prepend(...made);
    if (made.length) announce(plural(made.length, 'new task'));
    fresh = [];
    newer.hidden = true;
    showEmpty();
  }

  /** A task that has left the filter stays in sight with its new state. */
  async function lookAtLeavers(present) {
    const wanted = GROUPS[filter.state] ?? [filter.state];
    const gone = [...rows.values()].filter(({ task }) => !present.has(task.id) && !isOver(task.state) && wanted.includes(task.state));
    for (const { task } of gone.slice(0, 8)) {
      const now = await taskFacts(task.id) ?? asRow(await readTask(task.id), task.agent);
      update(now);
      rows.get(task.id).node.classList.toggle('left', !wanted.includes(now.state));
    }
  }

  function add(task) {
    const state = badge(task.state);
    const status = h('span.said');
    const words = h('span.words');
    const agent = h('span.agent.cut');
    const time = ago(task.statusTime);
    const lasted = h('span.lasted');
    const link = h('a.row', { 'data-row': true, 'data-task': task.id, href: href(`/tasks/${encodeURIComponent(task.id)}`) },
      state, agent, h('span.cut.message', words, status), time, lasted);
    const node = h('li', link);
    const row = { task, node, show() {
      const now = row.task;
      state.show(now.state);
      link.dataset.state = now.state;
      setText(agent, now.agent ?? '');
      setText(words, firstLine(now.message) || short(now.id));
      setText(status, firstLine(now.status));
      time.setAttribute('datetime', now.statusTime);
      setText(time, age(now.statusTime));
      setText(lasted, now.created ? span((isOver(now.state) ? Date.parse(now.statusTime) : Date.now()) - Date.parse(now.created)) : '');
    } };
    rows.set(task.id, row);
    row.show();
    return node;
  }

  function update(task) {
    const row = rows.get(task.id);
    if (!row) return false;
    row.task = { ...row.task, ...task };
    row.show();
    return true;
  }

  async function showCounts(known) {
    try {
      known ??= Object.fromEntries(await Promise.all(['working', ...GROUPS.waiting, 'submitted'].map(async (state) => [state, await countTasks(state)])));
      const failed = await countTasks('failed', 'today');
      if (signal.aborted) return;
      const waits = (known['input-required'] ?? 0) + (known['auth-required'] ?? 0);
      const all = [['submitted', 'submitted', known.submitted], ['working', 'working', known.working], ['waiting', 'waiting', waits],
        ['completed', 'completed', known.completed], ['failed', 'failed today', failed]];
      for (const [state, label, number] of all) if (number !== undefined) showCount(state, label, number);
    } catch {
      // The list says what is wrong.
    }
  }

  /** A link stays the same element when its number changes, so that it keeps the focus and takes a click at any time. */
  function showCount(state, label, number) {
    let link = counts.querySelector(`[data-count="${state}"]`);
    if (!link) {
      link = h('a', { href: href(`/tasks?state=${state}${state === 'failed' ? '&since=today' : ''}`), 'data-state': state, 'data-count': state, 'aria-current': filter.state === state ? 'true' : null }, h('b'), ` ${label}`);
      counts.append(link);
    }
    setText(link.firstChild, count(number));
    link.className = number ? '' : 'none';
  }

  function showEmpty() {
    main.querySelector('.empty')?.remove();
    if (rows.size) return;
    const isFiltered = FILTERS.some((name) => filter[name]);
    main.append(isFiltered ? emptyBox('No task fits', h('p', h('a', { href: href('/tasks') }, 'Show all tasks')))
      : emptyBox('No tasks yet', h('p', 'Send one: ', commandLine('sabir send hello')), h('p', 'Or write to one of the ', h('a', { href: href('/agents') }, 'agents'), ' here.')));
  }
}

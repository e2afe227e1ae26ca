// The list of tasks: live, filtered, counted. Rows change where they are; new ones come in at the top only when one looks there.

import { agents, asRow, countTasks, keyOf, listTasks, readTask, taskFacts, taskPage } from './api.js';
import { emptyBox, failureBox, limitedNote, pageHead, refresh, skeleton } from './boxes.js';
import { commandLine } from './clipboard.js';
import { every } from './connection.js';
import { announce, button, fill, h, setText } from './dom.js';
import { age, ago, count, firstLine, plural, short, span } from './format.js';
import { badge, GROUPS, isOver, STATES } from './state.js';
import { store } from './storage.js';

const SINCE = { '': 'any time', '1h': 'last hour', today: 'today', '7d': 'last 7 days' };
/** How many pages a look reads for what is new, and how many rows the list keeps. */
const MOST_PAGES = 10;
const MOST_ROWS = 2000;
const FILTERS = ['state', 'agent', 'context', 'since', 'id'];

export function open({ query, main, signal, href, go }) {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? '']));
  store('localStorage', 'sabir.filter', location.search);
  const rows = new Map();
  let fresh = new Map();
  /** So much is new that the list begins again. */
  let isBehind = false;
  /** Where older tasks begin; '': at the top, behind what is known; undefined: there are none. None of them is newer than `bound`. */
  let after;
  let bound = '';
  let isFirst = true;
  let round = 0;
  let looks = 0;
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
  const more = button('Load more', loadMore, { hidden: true, class: 'edge' });
  const content = h('div', skeleton(10));
  const newer = button('', showFresh, { class: 'newer', hidden: true });
  fill(main, pageHead('Tasks', h('form.filters', { role: 'search', onsubmit: (event) => {
    event.preventDefault();
    // An id is looked for among all tasks.
    change({ state: '', agent: '', context: '', since: '', id: search.value.trim() });
  } }, search, select('state', [['', 'all states'], ['open', 'open'], ['waiting', 'waiting'], ...STATES.map((state) => [state, state])]), agentChoice, select('since', Object.entries(SINCE)),
  filter.context && button(`context ${short(filter.context)} ×`, () => change({ context: '' }), { class: 'chip', title: 'Show all contexts' }))), counts, note, newer, content);
  if (query.has('search')) search.focus();

  function select(name, options) {
    return h('select', { 'aria-label': name, onchange: (event) => change({ [name]: event.target.value }) },
      options.map(([value, label]) => h('option', { value, selected: filter[name] === value }, label)));
  }

  agents().then((all) => all.filter((agent) => agent.id !== filter.agent).forEach((agent) => agentChoice.append(h('option', { value: agent.id }, agent.id))), () => {});
  const again = refresh(2000, signal, content, look);
  every(10_000, signal, () => counted || showCounts());

  const isUnchanged = (task) => (rows.get(keyOf(task))?.listed ?? fresh.get(keyOf(task))?.statusTime) === task.statusTime;

  async function look() {
    const mine = round;
    const isStart = isFirst;
    // A whole id opens its task, however many others begin with it. Of several with this id, the page of the task asks which.
    if (isStart && filter.id) {
      const exact = await Promise.resolve(taskFacts(filter.id)).catch((failure) => {
        if (failure.status !== 409) throw failure;
        return { id: filter.id };
      });
      if (signal.aborted) return;
      if (exact?.id === filter.id) return go(taskPage(exact), true);
    }
    const seen = [];
    let first;
    let cursor;
    for (let pages = 0; pages === 0 || (cursor && !isStart && !isBehind && pages < MOST_PAGES); pages += 1) {
      const page = await listTasks(filter, cursor, isStart ? undefined : isUnchanged);
      if (signal.aborted || mine !== round || isStart !== isFirst) return;
      first ??= page;
      seen.push(...page.tasks);
      cursor = page.after;
    }
    const named = filter.id ? seen.filter((task) => task.id === filter.id) : [];
    if (named.length === 1) return go(taskPage(named[0]), true);
    if (first.counts) {
      counted = true;
      showCounts(first.counts);
    }
    if (isStart) start(first);
    else {
      isBehind ||= Boolean(cursor);
      take(seen);
    }
    if (filter.state) await lookAtLeavers(new Set(seen.map(keyOf)));
  }

  function start(page) {
    isFirst = isBehind = false;
    rows.clear();
    fresh.clear();
    newer.hidden = true;
    after = page.after;
    bound = oldestOf(page.tasks);
    list.replaceChildren(...page.tasks.map(add));
    fill(content, list, more);
    showNote(page);
    showEdges();
  }

  const oldestOf = (tasks) => tasks.reduce((least, task) => (task.statusTime < least ? task.statusTime : least), tasks[0]?.statusTime ?? '');

  const showNote = (page) => fill(note, page.limited ? h('p.note', page.limited) : page.isLimited && limitedNote('durations, owners and search by a part of an id'));

  function take(seen) {
    const unknown = seen.filter((task) => !update(task, true) && (after === undefined || task.statusTime > bound));
    for (const task of unknown) fresh.set(keyOf(task), task);
    isBehind ||= fresh.size > MOST_PAGES * 50;
    if (fresh.size || isBehind) {
      // Whoever has scrolled down reads something; it stays where it is.
      if (window.scrollY < 40 && !list.contains(document.activeElement)) showFresh();
      else {
        setText(newer, isBehind ? 'Many new tasks' : plural(fresh.size, 'new task'));
        newer.hidden = false;
      }
    }
    showEdges();
  }

  function showFresh() {
    if (isBehind) {
      isFirst = true;
      round += 1;
      return again();
    }
    const tasks = [...fresh.values()].sort((one, other) => (one.statusTime < other.statusTime ? 1 : -1));
    const made = tasks.map(add);
    for (const node of made) node.classList.add('fresh');
    list.prepend(...made);
    if (made.length) announce(plural(made.length, 'new task'));
    fresh.clear();
    newer.hidden = true;
    trim();
    showEdges();
  }

  /** Rows at the end go when too many have come in at the top. */
  function trim() {
    if (rows.size <= MOST_ROWS) return;
    for (bound = ''; rows.size > MOST_ROWS;) {
      const { task } = list.lastElementChild.row;
      rows.delete(keyOf(task));
      list.lastElementChild.remove();
      if (task.statusTime > bound) bound = task.statusTime;
    }
    after = '';
  }

  async function loadMore() {
    more.disabled = true;
    try {
      const mine = round;
      const isCut = after === '';
      let page;
      let older;
      do {
        page = await listTasks(filter, after);
        if (signal.aborted || mine !== round) return;
        after = page.after;
        older = page.tasks.filter((task) => !update(task) && !fresh.has(keyOf(task)) && !(isCut && task.statusTime > bound));
      } while (!older.length && after);
      list.append(...older.map(add));
      if (older.length) bound = oldestOf(older);
      showNote(page);
      showEdges();
    } catch (failure) {
      if (!signal.aborted && failure.status !== 401) fill(note, failureBox(failure, loadMore));
    } finally {
      more.disabled = false;
    }
  }

  /** A task that has left the filter stays in sight with its new state. */
  async function lookAtLeavers(present) {
    const wanted = GROUPS[filter.state] ?? [filter.state];
    const gone = [...rows.values()].filter(({ task }) => !present.has(keyOf(task)) && !isOver(task.state) && wanted.includes(task.state));
    looks += 1;
    for (const row of gone.sort((one, other) => one.looked - other.looked).slice(0, 8)) {
      const { task } = row;
      row.looked = looks;
      const now = await taskFacts(task.id, task.number) ?? asRow(await readTask(task), task.agent);
      update(now);
      row.node.classList.toggle('left', !wanted.includes(now.state));
    }
  }

  function add(task) {
    const state = badge(task.state);
    const status = h('span.said');
    const words = h('span.words');
    const agent = h('span.agent.cut');
    const time = ago(task.statusTime);
    const lasted = h('span.lasted');
    const link = h('a.row', { 'data-row': true, 'data-task': task.id, href: href(taskPage(task)) },
      state, agent, h('span.cut.message', words, status), time, lasted);
    const node = h('li', link);
    const row = { task, node, listed: task.statusTime, looked: 0, show() {
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
    node.row = row;
    rows.set(keyOf(task), row);
    row.show();
    return node;
  }

  function update(task, isListed) {
    const row = rows.get(keyOf(task));
    if (!row) return false;
    if (isListed) row.listed = task.statusTime;
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

  function showEdges() {
    more.hidden = after === undefined;
    main.querySelector('.empty')?.remove();
    if (rows.size || fresh.size) return;
    const isFiltered = FILTERS.some((name) => filter[name]);
    content.append(isFiltered ? emptyBox('No task fits', h('p', h('a', { href: href('/tasks') }, 'Show all tasks')))
      : emptyBox('No tasks yet', h('p', 'Send one: ', commandLine('sabir send hello')), h('p', 'Or write to one of the ', h('a', { href: href('/agents') }, 'agents'), ' here.')));
  }
}

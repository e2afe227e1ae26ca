// The server, as any A2A 1.0 client sees it: HTTP+JSON, and server-sent events by fetch with `Last-Event-ID`.
// What A2A has no call for comes from /admin/v1; where the caller may not use it, `admin` answers null and pages do without.

import { back, noteLost } from './connection.js';
import { pause } from './dom.js';
import { GROUPS, isOver, ofA2a, toA2a } from './state.js';

/** Where the server is. It may be below a path of a proxy. */
export const ROOT = new URL('../..', import.meta.url);
export const CONSOLE = new URL('console', ROOT).pathname;
/** The address of a path. `message:send` alone would be read as a scheme. */
export const at = (path) => new URL(`./${path}`, ROOT);
const TOKEN = 'sabir.token';
const PAGE = 50;

/** An answer that is none. `status` 0: there was no answer. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(TOKEN);
export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
  adminRefusal = null;
}

let askForToken = () => {};
/** Called when the server wants a credential, with what it said. */
export const onUnauthorized = (act) => { askForToken = act; };

/** Why this caller has no admin calls; null: it has, as far as we know. */
export let adminRefusal = null;

async function request(path, { method = 'GET', body, headers = {}, signal } = {}) {
  const all = { 'A2A-Version': '1.0', ...headers };
  if (!all['A2A-Version']) delete all['A2A-Version'];
  if (body !== undefined) all['Content-Type'] = 'application/json';
  const shown = token();
  if (shown) all.Authorization = `Bearer ${shown}`;
  let response;
  try {
    response = await fetch(at(path), {
      method, headers: all, signal, cache: 'no-store', redirect: 'error',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    noteLost(() => fetch(at('healthz'), { cache: 'no-store' }));
    throw new Failure(0, 'the server does not answer');
  }
  if (response.ok) return response;
  const failure = new Failure(response.status, await reason(response));
  if (response.status === 401) askForToken(shown ? 'The server does not take this token.' : '');
  throw failure;
}

/** What an answer says went wrong, in words. */
async function reason(response) {
  const text = await response.text().catch(() => '');
  try {
    const body = JSON.parse(text);
    const violations = (body.error?.details ?? []).flatMap((detail) => detail.fieldViolations ?? []);
    if (violations.length) return violations.map((one) => `${one.field}: ${one.description}`).join('; ');
    const said = body.detail ?? body.error?.message ?? body.message;
    if (said) return said;
  } catch {
    // Not JSON: a proxy, perhaps.
  }
  return text.length > 0 && text.length < 200 ? text.trim() : `the server answered ${response.status}`;
}

export async function json(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? null : response.json();
}

/** An admin call; null: this caller may not make it, or this server does not have it. */
export async function admin(path, options) {
  try {
    return await json(`admin/v1/${path}`, options);
  } catch (failure) {
    if (failure.status !== 403 && failure.status !== 404) throw failure;
    if (failure.status === 403) adminRefusal = failure.message;
    return null;
  }
}

/** An admin call that changes something; what refuses it is an error. */
export const adminAct = (path, method = 'POST') => json(`admin/v1/${path}`, { method });

export const below = (agent) => (agent ? `agents/${encodeURIComponent(agent)}/` : '');
const taskPath = (id) => `tasks/${encodeURIComponent(id)}`;

// Tasks

/** One page of tasks: `{ tasks, after, counts }`, tasks as /admin/v1 has them. */
export async function listTasks(filter, after) {
  const query = new URLSearchParams();
  const states = [filter.state || []].flat();
  for (const state of states) query.append('state', state);
  for (const name of ['agent', 'context', 'id', 'owner']) if (filter[name]) query.set(name, filter[name]);
  if (filter.since) query.set('since', sinceTime(filter.since));
  query.set('limit', PAGE);
  if (after) query.set('after', after);
  const answer = adminRefusal ? null : await admin(`tasks?${query}`);
  return answer ?? listByA2a(filter, states, after);
}

/** Several lists of A2A joined: it filters by one state, and does not say whose agent a task is. */
async function listByA2a(filter, states, after) {
  if (filter.id) {
    const task = await json(taskPath(filter.id)).catch((failure) => {
      if (failure.status !== 404 && failure.status !== 400) throw failure;
    });
    return { tasks: task ? [asRow(task)] : [], limited: 'Without admin calls only whole ids are found.' };
  }
  const wanted = states.flatMap((state) => GROUPS[state] ?? [state]);
  const known = (await agents()).map((agent) => agent.id);
  const chosen = filter.agent ? [filter.agent] : known.length <= 8 ? known : [undefined];
  const tokens = after ? JSON.parse(after) : null;
  const lists = chosen.flatMap((agent) => (wanted.length ? wanted : [undefined]).map((state) => ({ agent, state })));
  const next = {};
  const tasks = [];
  await Promise.all(lists.map(async ({ agent, state }) => {
    const key = `${agent ?? ''} ${state ?? ''}`;
    if (tokens && !tokens[key]) return;
    const query = new URLSearchParams({ pageSize: PAGE, historyLength: 20 });
    if (state) query.set('status', toA2a(state));
    if (filter.context) query.set('contextId', filter.context);
    if (filter.since) query.set('statusTimestampAfter', sinceTime(filter.since));
    if (tokens) query.set('pageToken', tokens[key]);
    const page = await json(`${below(agent)}tasks?${query}`);
    for (const task of page.tasks) tasks.push(asRow(task, agent));
    if (page.nextPageToken) next[key] = page.nextPageToken;
  }));
  tasks.sort((one, other) => (one.statusTime < other.statusTime ? 1 : -1));
  return { tasks, after: Object.keys(next).length ? JSON.stringify(next) : undefined, isLimited: true };
}

/** A task of A2A as /admin/v1 shows it, as far as A2A says it. */
export function asRow(task, agent) {
  const first = task.history?.find((message) => message.role === 'ROLE_USER');
  return {
    id: task.id, context: task.contextId, agent, state: ofA2a(task.status.state), statusTime: task.status.timestamp,
    message: first ? textOf(first).slice(0, 200) : '', status: textOf(task.status.message).slice(0, 200),
  };
}

/** `1h`, `today` or `7d` as a time. */
export function sinceTime(since) {
  const ago = /^(\d+)([hd])$/.exec(since);
  if (ago) return new Date(Date.now() - ago[1] * (ago[2] === 'h' ? 3600e3 : 86400e3)).toISOString();
  if (since === 'today') return new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
  return since;
}

/** How many tasks are in a state; A2A says it beside a list. */
export async function countTasks(state, since) {
  const query = new URLSearchParams({ status: toA2a(state), pageSize: 1, historyLength: 0 });
  if (since) query.set('statusTimestampAfter', sinceTime(since));
  return (await json(`tasks?${query}`)).totalSize ?? 0;
}

/** Every task that waits for somebody, with its question: `[{ task, agent }]`, the oldest first. */
export async function waitingTasks() {
  const all = await Promise.all(GROUPS.waiting.map(async (state) => {
    const query = new URLSearchParams({ status: toA2a(state), pageSize: 100, historyLength: 20 });
    return (await json(`tasks?${query}`)).tasks;
  }));
  const tasks = all.flat().sort((one, other) => (one.status.timestamp < other.status.timestamp ? -1 : 1));
  const rows = tasks.length ? await listTasks({ state: 'waiting' }) : { tasks: [] };
  const agentOf = new Map(rows.tasks.map((row) => [row.id, row.agent]));
  return tasks.map((task) => ({ task, agent: agentOf.get(task.id) }));
}

export const readTask = (id, signal) => json(taskPath(id), { signal });
export const taskFacts = (id) => (adminRefusal ? null : admin(taskPath(id)));
export const cancelTask = (id) => json(`${taskPath(id)}:cancel`, { method: 'POST', body: {} });
export const webhooksOf = async (id) => (await json(`${taskPath(id)}/pushNotificationConfigs`)).configs ?? [];

/** Sends a message and does not wait for the end: `{ task }` or `{ message }`. */
export function send(parts, { agent, task, context } = {}) {
  const message = { messageId: crypto.randomUUID?.() ?? `console-${Date.now()}-${Math.random()}`, role: 'ROLE_USER', parts };
  if (task) message.taskId = task;
  if (context) message.contextId = context;
  const headers = { 'Idempotency-Key': message.messageId };
  return json(`${below(agent)}message:send`, { method: 'POST', headers, body: { message, configuration: { returnImmediately: true } } });
}

export const textOf = (message) => (message?.parts ?? []).map((part) => part.text).filter((text) => text !== undefined).join('\n');

// Agents

let agentList = null;
/** The agents that this caller may know of, with their queues where admin calls say them. */
export async function agents() {
  const answer = adminRefusal ? null : await admin('agents');
  if (answer) return (agentList = answer.agents);
  if (agentList?.every((agent) => agent.kind === undefined)) return agentList;
  agentList = (await json('v1/a2a/agents')).map((agent) => ({ id: agent.agentId }));
  return agentList;
}

/** The card of an agent; `version` undefined: the one with the members of all versions. */
export const card = (agent, version) =>
  json(`${below(agent)}.well-known/agent-card.json`, { headers: { 'A2A-Version': version ?? '' } });

// Streams

/** Each way to ask for the events of a task after a number. */
export const DIALECTS = [
  { id: 'rest10', name: 'HTTP+JSON 1.0', version: '1.0', request: (task) => ({ path: `${taskPath(task)}:subscribe` }) },
  { id: 'rpc10', name: 'JSON-RPC 1.0', version: '1.0', request: rpc('', 'SubscribeToTask') },
  { id: 'rpc03', name: 'JSON-RPC 0.3', version: '0.3', request: rpc('a2a/v0.3', 'tasks/resubscribe') },
  { id: 'rpc01', name: 'JSON-RPC 0.1', version: '0.1', request: rpc('a2a/v0.1', 'tasks/resubscribe') },
];

function rpc(path, method) {
  return (task) => ({ path, method: 'POST', body: { jsonrpc: '2.0', id: 1, method, params: { id: task } } });
}

/** The frames of a task after event number `after`, as `{ id, data }`, until the server or the signal ends them. */
export async function* frames(task, after, signal, dialect = DIALECTS[0]) {
  const { path, ...options } = dialect.request(task);
  const headers = { 'A2A-Version': dialect.version, 'Last-Event-ID': String(after), Accept: 'text/event-stream' };
  const response = await request(path, { ...options, headers, signal });
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const answer = await response.json();
    throw new Failure(response.status, answer.error?.data?.detail ?? answer.error?.message ?? 'the answer is no stream');
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      let start = 0;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n', start)) {
        const frame = { id: 0, data: '' };
        for (const line of rest.slice(start, end).split('\n')) {
          if (line.startsWith('id:')) frame.id = Number(line.slice(3));
          else if (line.startsWith('data:')) frame.data += line.slice(5).trimStart();
        }
        start = end + 2;
        if (frame.data) yield frame;
      }
      rest = rest.slice(start);
    }
  } catch (error) {
    if (signal?.aborted) return;
    throw new Failure(0, 'the stream broke off');
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The events after number `after` up to number `last`. */
export async function readEvents(task, after, last, signal) {
  const found = [];
  if (last <= after) return found;
  const enough = new AbortController();
  const stop = () => enough.abort();
  signal?.addEventListener('abort', stop, { once: true });
  for await (const { id, data } of frames(task, after, enough.signal)) {
    if (id > last) break;
    found.push({ number: id, ...JSON.parse(data) });
    if (id === last) break;
  }
  signal?.removeEventListener('abort', stop);
  enough.abort();
  return found;
}

/** The number of a task's last event. A number beyond it is refused, and the refusal names the last one. */
export async function lastEvent(task, signal) {
  try {
    const headers = { 'Last-Event-ID': '9007199254740991' };
    await request(`${taskPath(task)}:subscribe`, { headers, signal });
  } catch (failure) {
    const said = failure.status === 400 && /which is (\d+)/.exec(failure.message);
    if (said) return Number(said[1]);
    throw failure;
  }
  throw new Failure(0, 'the server did not say how long the task is');
}

/**
 * Every event after number `after`, each once, until the task is over or the signal ends it. A connection that breaks is made again
 * and goes on behind the last event. A page that nobody looks at gives its connection back: browsers have few of them.
 */
export async function follow(task, after, signal, onEvent) {
  let last = after;
  let tries = 0;
  while (!signal.aborted) {
    await back();
    await untilSeen(signal);
    if (signal.aborted) return;
    const connection = new AbortController();
    const stop = () => connection.abort();
    let hiding;
    const watch = () => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(stop, 20_000);
    };
    signal.addEventListener('abort', stop);
    document.addEventListener('visibilitychange', watch);
    let over = false;
    try {
      for await (const { id, data } of frames(task, last, connection.signal)) {
        if (id <= last) continue;
        const event = { number: id, ...JSON.parse(data) };
        last = id;
        tries = 0;
        over = isOver(ofA2a((event.statusUpdate ?? event.task)?.status?.state));
        onEvent(event);
      }
    } catch (failure) {
      if (!signal.aborted && ![0, 429, 502, 503, 504].includes(failure.status)) throw failure;
    } finally {
      clearTimeout(hiding);
      signal.removeEventListener('abort', stop);
      document.removeEventListener('visibilitychange', watch);
    }
    if (over) return;
    // Streams end at a question, too; the next one begins behind it.
    await pause(Math.min(100 * 2 ** tries, 4000), signal);
    tries += 1;
  }
}

function untilSeen(signal) {
  if (!document.hidden) return null;
  return new Promise((resolve) => {
    const done = () => {
      document.removeEventListener('visibilitychange', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

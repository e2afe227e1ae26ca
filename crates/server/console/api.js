// The server, as any A2A 1.0 client sees it: HTTP+JSON, and server-sent events by fetch with `Last-Event-ID`.
// What A2A has no call for comes from /admin/v1; where the caller may not use it, `admin` answers null and pages do without.

import { back, noteLost } from './connection.js';
import { pause } from './dom.js';
import { GROUPS, isOver, ofA2a, toA2a } from './state.js';
import { readStored, store } from './storage.js';

/** Where the server is. It may be below a path of a proxy. */
const ROOT = new URL('../..', import.meta.url);
export const CONSOLE = new URL('console', ROOT).pathname;
/** The address of a path. `message:send` alone would be read as a scheme. */
export const at = (path) => new URL(`./${path}`, ROOT);
const TOKEN = 'sabir.token';
const PAGE = 50;
/** How long a call may take, and a stream be silent: the server sends a comment every 15 s. */
const PATIENCE = 30_000;
const SILENCE = 45_000;
/** Agents are given time to stop, and a task may be large. */
const LONG = 300_000;

/** An answer that is none. `status` 0: there was no answer. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => readStored('sessionStorage', TOKEN);
export function setToken(value) {
  store('sessionStorage', TOKEN, value || null);
  adminRefusal = null;
  agentList = null;
  lastWaiting = null;
}

let askForToken = () => {};
/** Called when the server wants a credential, with what it said. */
export const onUnauthorized = (act) => { askForToken = act; };

/** Why this caller has no admin calls; null: it has, as far as we know. */
export let adminRefusal = null;

/** A signal that follows `outer`, and also ends when nobody calls `touch` for so long: then `isLate`. */
function deadline(ms, outer) {
  const line = new AbortController();
  const stop = () => line.abort();
  let timer;
  const limit = {
    signal: line.signal, isLate: false,
    touch() {
      clearTimeout(timer);
      timer = setTimeout(() => {
        limit.isLate = true;
        stop();
      }, ms);
    },
    end() {
      clearTimeout(timer);
      outer?.removeEventListener('abort', stop);
      stop();
    },
  };
  if (outer?.aborted) stop();
  outer?.addEventListener('abort', stop);
  limit.touch();
  return limit;
}

function ping() {
  const limit = deadline(5000);
  return fetch(at('healthz'), { cache: 'no-store', signal: limit.signal }).finally(limit.end);
}

const late = () => new Failure(504, 'the server takes too long to answer');

async function request(path, { method = 'GET', body, headers = {}, limit }) {
  const all = { 'A2A-Version': '1.0', ...headers };
  if (!all['A2A-Version']) delete all['A2A-Version'];
  if (body !== undefined) all['Content-Type'] = 'application/json';
  const shown = token();
  if (shown) all.Authorization = `Bearer ${shown}`;
  let response;
  try {
    response = await fetch(at(path), {
      method, headers: all, signal: limit.signal, cache: 'no-store', redirect: 'error',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (limit.signal.aborted && !limit.isLate) throw error;
    noteLost(ping);
    throw limit.isLate ? late() : new Failure(0, 'the server does not answer');
  }
  if (response.ok) return response;
  const failure = new Failure(response.status, await reason(response));
  // A refusal that comes after a login is about the token before it.
  if (response.status === 401 && shown === token()) askForToken(shown ? 'The server does not take this token.' : '');
  throw failure;
}

/** Whether the same call may well succeed in a moment. */
const isPassing = ({ status }) => [0, 429, 502, 503, 504].includes(status);

/** Calls `act` until the server answers; `onFailure` is told of each answer that says to come back later. */
export async function untilAnswered(signal, act, onFailure = () => {}) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await act();
    } catch (failure) {
      if (signal.aborted || !isPassing(failure)) throw failure;
      // A server that does not answer at all is told of by the bar.
      if (failure.status !== 0) onFailure(failure);
      await pause(Math.min(250 * 2 ** tries, 4000), signal);
      await back();
      if (signal.aborted) throw failure;
    }
  }
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

export async function json(path, { patience = PATIENCE, signal, ...options } = {}) {
  const limit = deadline(patience, signal);
  try {
    const response = await request(path, { ...options, limit });
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error instanceof Failure || signal?.aborted) throw error;
    throw limit.isLate ? late() : new Failure(502, 'the answer is incomplete');
  } finally {
    limit.end();
  }
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
export const adminAct = (path, method = 'POST') => json(`admin/v1/${path}`, { method, patience: LONG });

export const below = (agent) => (agent ? `agents/${encodeURIComponent(agent)}/` : '');
/** A task is its id, or `{ id, agent }` where several agents have tasks of this id. */
export const taskPath = (task) => `${below(task.agent)}tasks/${encodeURIComponent(task.id ?? task)}`;
/** Callers of 0.1 choose ids, so two tasks may have the same. Numbers are unique, where admin calls tell them. */
export const keyOf = (task) => String(task.number ?? `${task.agent} ${task.id}`);
/** The pages of a task and of an agent. */
export const agentPage = (id) => `/agents/${encodeURIComponent(id)}`;
export const taskPage = ({ id, number }) => `/tasks/${encodeURIComponent(id)}${number ? `?no=${number}` : ''}`;

// Tasks

/** One page of tasks as /admin/v1 has them, the newest status first: `{ tasks, after, counts }`. It is the last one if a task `isUnchanged`. */
export async function listTasks(filter, after, isUnchanged = () => false) {
  const query = new URLSearchParams();
  const states = filter.state ? [filter.state] : [];
  for (const state of states) query.append('state', state);
  for (const name of ['agent', 'context', 'id', 'owner']) if (filter[name]) query.set(name, filter[name]);
  if (filter.since) query.set('since', sinceTime(filter.since));
  query.set('limit', PAGE);
  if (after) query.set('after', after);
  const answer = adminRefusal ? null : await admin(`tasks?${query}`);
  if (answer?.tasks.some(isUnchanged)) delete answer.after;
  return answer ?? listByA2a(filter, states, after, isUnchanged);
}

/** Several lists of A2A joined: it filters by one state, and does not say whose agent a task is. */
async function listByA2a(filter, states, after, isUnchanged) {
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
    const rows = page.tasks.map((task) => asRow(task, agent));
    tasks.push(...rows);
    if (page.nextPageToken && !rows.some(isUnchanged)) next[key] = page.nextPageToken;
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
function sinceTime(since) {
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

let lastWaiting = null;
/** Every task that waits for somebody, with its question: `[{ task, agent, number }]`, the oldest first. */
export async function waitingTasks() {
  const read = (state, pageToken) => json(`tasks?${new URLSearchParams({ status: toA2a(state), pageSize: 100, historyLength: 20, ...pageToken && { pageToken } })}`);
  const pages = await Promise.all(GROUPS.waiting.map((state) => read(state)));
  // A new question is on a first page, and one that is gone is missing in the count.
  const mark = JSON.stringify([token(), pages.map((page) => [page.totalSize, page.tasks.map((task) => [task.id, task.contextId, task.status.timestamp])])]);
  if (lastWaiting?.mark === mark) return lastWaiting.found;
  const tasks = [];
  for (const [index, state] of GROUPS.waiting.entries()) {
    for (let page = pages[index]; page; page = page.nextPageToken && await read(state, page.nextPageToken)) tasks.push(...page.tasks);
  }
  // A2A does not say whose a task is.
  const nameOf = ({ id, context, statusTime }) => JSON.stringify([id, context, statusTime]);
  const rows = new Map();
  for (let after = ''; after !== undefined && tasks.length && !adminRefusal;) {
    const page = await admin(`tasks?${new URLSearchParams({ state: 'waiting', limit: 1000, ...after && { after } })}`);
    for (const row of page?.tasks ?? []) rows.set(nameOf(row), rows.has(nameOf(row)) ? {} : row);
    after = page?.after;
  }
  const found = tasks.map((task) => {
    const { agent, number } = rows.get(nameOf(asRow(task))) ?? {};
    return { task, agent, number };
  });
  found.sort((one, other) => (one.task.status.timestamp < other.task.status.timestamp ? -1 : 1));
  lastWaiting = pages.every((page) => page.totalSize !== undefined) && (adminRefusal || found.every(({ agent }) => agent)) ? { mark, found } : null;
  return found;
}

export const readTask = (task, signal) => json(taskPath(task), { signal, patience: LONG });
export const taskFacts = (id, number) => (adminRefusal ? null : admin(`${taskPath(id)}${number ? `?number=${number}` : ''}`));
/** Every task with exactly this id. A list finds all whose id begins with it. */
export async function tasksWithId(id) {
  const found = [];
  for (let after = ''; after !== undefined;) {
    const page = await admin(`tasks?${new URLSearchParams({ id, limit: 1000, ...after && { after } })}`);
    found.push(...(page?.tasks ?? []).filter((task) => task.id === id));
    after = page?.after;
  }
  return found;
}
export const webhooksOf = async (task) => (await json(`${taskPath(task)}/pushNotificationConfigs`)).configs ?? [];
export const cancelTask = (task) => json(`${taskPath(task)}:cancel`, { method: 'POST', body: {}, patience: LONG });
/** Cancels exactly the task with this number, whoever has others with its id. */
export async function cancelByNumber(number) {
  const { failed } = await adminAct(`tasks/cancel?number=${number}`);
  if (failed.length) throw new Failure(409, failed[0].reason);
}

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
  { id: 'rest03', name: 'HTTP+JSON 0.3', version: '0.3', request: (task) => ({ path: `${below(task.agent)}v1/${taskPath(task.id ?? task)}:subscribe` }) },
  { id: 'rpc10', name: 'JSON-RPC 1.0', version: '1.0', request: rpc('', 'SubscribeToTask') },
  // 0.2 is answered with the same frames.
  { id: 'rpc03', name: 'JSON-RPC 0.3, 0.2', version: '0.3', request: rpc('a2a/v0.3', 'tasks/resubscribe') },
  { id: 'rpc01', name: 'JSON-RPC 0.1', version: '0.1', request: rpc('a2a/v0.1', 'tasks/resubscribe') },
];

function rpc(path, method) {
  return (task) => ({ path: below(task.agent) + path, method: 'POST', body: { jsonrpc: '2.0', id: 1, method, params: { id: task.id ?? task } } });
}

/** The frames of a task after event number `after`, as `{ id, data }`, until the server or the signal ends them. */
export async function* frames(task, after, signal, dialect = DIALECTS[0]) {
  const { path, ...options } = dialect.request(task);
  const headers = { 'A2A-Version': dialect.version, 'Last-Event-ID': String(after), Accept: 'text/event-stream' };
  const limit = deadline(SILENCE, signal);
  try {
    const response = await request(path, { ...options, headers, limit });
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      const answer = await response.json();
      throw new Failure(response.status, answer.error?.data?.detail ?? answer.error?.message ?? 'the answer is no stream');
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    // Joined only where a frame ends: a large one comes in many pieces, and would be copied and searched with each.
    let pieces = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      limit.touch();
      const endsBetween = value.startsWith('\n') && pieces.at(-1)?.endsWith('\n');
      pieces.push(value);
      if (!endsBetween && !value.includes('\n\n')) continue;
      const rest = pieces.join('');
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
      pieces = start < rest.length ? [rest.slice(start)] : [];
    }
  } catch (error) {
    if (signal?.aborted) return;
    if (error instanceof Failure) throw error;
    if (limit.isLate) noteLost(ping);
    throw new Failure(0, 'the stream broke off');
  } finally {
    limit.end();
  }
}

/** The events after number `after` up to number `last`. */
export async function readEvents(task, after, last, signal) {
  const found = [];
  if (last <= after) return found;
  for await (const { id, data } of frames(task, after, signal)) {
    if (id > last) break;
    found.push({ number: id, ...JSON.parse(data) });
    if (id === last) break;
  }
  return found;
}

/** The number of a task's last event. A number beyond it is refused, and the refusal names the last one. */
export async function lastEvent(task, signal) {
  try {
    const headers = { 'Last-Event-ID': '9007199254740991' };
    await json(`${taskPath(task)}:subscribe`, { headers, signal });
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
      if (!signal.aborted && !isPassing(failure)) throw failure;
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

// What a case runs on: a real server with a database of its own, and clients of one SDK.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** For what happens at all, however busy the machine is. */
export const PATIENCE_MS = 60_000;
export const TOKEN = 'sabir_alice-0123456789abcdef012345678';
export const CREDENTIALS =
  `[[auth.token]]\nsubject = "alice"\nhash = "sha256:${createHash('sha256').update(TOKEN).digest('hex')}"\n` +
  'scopes = ["run", "read"]\n';
/** What the asking agent wants to do, and says once it is allowed to. */
const PERMISSION = {
  text: 'Done. The folder **build** is gone.',
  title: 'rm -rf build',
  input: { command: 'rm -rf build', description: 'Remove what was built' },
};

/** A server that can be killed and started again at the same address, with the same database. */
export class Server {
  /** Those that run. */
  static all = new Set();

  static async start(programs, settings = '') {
    const server = new Server();
    server.programs = programs;
    Server.all.add(server);
    server.folder = mkdtempSync(join(tmpdir(), 'sabir-mcp-'));
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    writeFileSync(join(server.folder, 'said.json'), JSON.stringify(PERMISSION));
    const agent = JSON.stringify([programs.python, programs.agent, join(server.folder, 'said.json')]);
    const agents =
      '[[agent]]\nid = "demo"\nkind = "demo"\ndefault = true\n\n' +
      `[[agent]]\nid = "asks"\nkind = "acp"\ncommand = ${agent}\ndescription = "Asks first"\n`;
    writeFileSync(join(server.folder, 'sabir.toml'), `${settings}\n${agents}`);
    await server.begin();
    return server;
  }

  async begin() {
    const { PATH, LANG, TMPDIR } = process.env;
    const store = `sqlite:${join(this.folder, 'tasks.db')}`;
    const log = openSync(join(this.folder, 'log'), 'a');
    const args = ['serve', '--port', `${this.port}`, '--store', store, '--config', join(this.folder, 'sabir.toml')];
    const env = { HOME: this.folder, ...(PATH && { PATH }), ...(LANG && { LANG }), ...(TMPDIR && { TMPDIR }) };
    this.child = spawn(this.programs.sabir, args, { cwd: this.folder, env, stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    this.ended = once(this.child, 'exit');
    const lines = createInterface({ input: this.child.stdout });
    const first = once(lines, 'line').then(() => true);
    const isUp = await Promise.race([first, this.ended.then(() => false), pause(PATIENCE_MS, false, { ref: false })]);
    assert(isUp, `the server does not start: ${readFileSync(join(this.folder, 'log'), 'utf8').slice(-2000)}`);
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** Ends it, with what it has started, and removes its folder. */
  async close() {
    this.child.kill('SIGTERM');
    const isOver = await Promise.race([this.ended.then(() => true), pause(PATIENCE_MS, false, { ref: false })]);
    if (!isOver) await this.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    Server.all.delete(this);
  }

  /** How many tasks there are, as A2A 1.0 counts them. */
  async numberOfTasks() {
    const reply = await fetch(`${this.url}/tasks`, { headers: { 'A2A-Version': '1.0' } });
    return (await reply.json()).totalSize;
  }
}

/** The server of a case, and how its clients connect. What it opens ends with the case. */
export class Stage {
  #closing = [];

  constructor(programs, server, sdk) {
    Object.assign(this, { programs, server, sdk });
  }

  /** A server for this case alone. */
  async ownServer(settings) {
    const server = await Server.start(this.programs, settings);
    this.#closing.push(() => server.close());
    return server;
  }

  /** A client; `elicit` answers what it is asked, and without it the client has no elicitation. */
  async client({ server = this.server, token, elicit } = {}) {
    const client = await this.sdk.connect({ url: `${server.url}/mcp`, token, elicit });
    assert.equal(client.version, this.sdk.version);
    this.#closing.push(() => client.close());
    return client;
  }

  get isModern() {
    return this.sdk.version === '2026-07-28';
  }

  async close() {
    for (const close of this.#closing.reverse()) await close();
  }
}

/** Answers elicitations with one action, and remembers what was asked. */
export function user(action, content) {
  const questions = [];
  const elicit = async (params) => {
    questions.push(params);
    return content ? { action, content } : { action };
  };
  return Object.assign(elicit, { questions });
}

/** The text that a model reads. */
export const words = (result) => result.content[0].text;

/** The task of a result, which must be in this state. */
export function dataOf(result, state) {
  assert.equal(result.structuredContent?.state, state, words(result));
  return result.structuredContent;
}

/** What a promise fails with. */
export async function failure(promise) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    return error;
  }
  assert.fail(`it succeeds: ${JSON.stringify(result)}`);
}

/** Waits until the condition gives something, and returns that. */
export async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await condition();
    if (found) return found;
    assert(Date.now() < deadline, `never: ${what}`);
    await pause(50);
  }
}

/** The id of a task that has begun; nobody waits for it. */
export async function begin(client, message, more = {}) {
  const result = await client.call('ask_agent', { message, wait_seconds: 0, ...more });
  assert(!result.isError, words(result));
  return result.structuredContent.task;
}

/** The task once it is in one of these states. */
export async function inState(client, task, ...states) {
  const shown = async () => {
    const now = (await client.call('get_task', { task })).structuredContent;
    return states.includes(now.state) ? now : null;
  };
  return until(shown, `${task} is ${states.join(' or ')}`);
}

/** A promise, and the function that resolves it. */
export function signal() {
  let give;
  const given = new Promise((resolve) => (give = resolve));
  return { given, give };
}

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

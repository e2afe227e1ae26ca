// A call that ends early stops waiting; its task goes on.

import assert from 'node:assert/strict';

import { begin, failure, inState, signal, words } from './stage.mjs';

/** Interrupts a call, and shows that its task is completed all the same, and that there is one. */
async function interrupted(stage, interrupt) {
  const before = await stage.server.numberOfTasks();
  const ask = { message: 'stream 40 100', idempotency_key: `interrupted-${Math.random()}` };
  const working = signal();
  const client = await stage.client();
  const call = (options) => client.call('ask_agent', ask, { onprogress: working.give, ...options });
  const error = await interrupt({ client, call, working: working.given });
  const other = await stage.client();
  const task = await begin(other, ask.message, { idempotency_key: ask.idempotency_key });
  assert.match((await inState(other, task, 'completed')).answer, /chunk 40/);
  assert.equal(await stage.server.numberOfTasks(), before + 1);
  return error;
}

export async function aCallThatTimesOutChangesNothing(stage) {
  const error = await interrupted(stage, ({ call }) => failure(call({ timeout: 1500 })));
  assert.match(error.message, /timed out/i);
}

export async function aCallThatIsAbortedChangesNothing(stage) {
  await interrupted(stage, async ({ call, client, working }) => {
    const abort = new AbortController();
    const error = failure(call({ signal: abort.signal }));
    await working;
    abort.abort();
    await error;
    // The client goes on.
    assert((await client.tools()).length > 0);
  });
}

export async function aClientThatGoesAwayChangesNothing(stage) {
  await interrupted(stage, async ({ call, client, working }) => {
    const error = failure(call());
    await working;
    await client.close();
    await error;
  });
}

export async function severalCallsOfOneClientWaitAtTheSameTime(stage) {
  const client = await stage.client();
  const messages = Array.from({ length: 8 }, (_, number) => `slow 1 number ${number}`);
  const results = await Promise.all(messages.map((message) => client.call('ask_agent', { message })));
  assert.deepEqual(results.map(words), messages.map((message) => `echo: ${message}`));
}

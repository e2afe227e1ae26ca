// The server is killed while a call waits.

import assert from 'node:assert/strict';

import { begin, dataOf, failure, inState, signal, user, words } from './stage.mjs';

export async function aTaskOutlivesAKillOfTheServer(stage) {
  const server = await stage.ownServer();
  const client = await stage.client({ server });
  const finished = dataOf(await client.call('ask_agent', { message: 'hello' }), 'completed').task;
  const asking = dataOf(await client.call('ask_agent', { message: 'ask which day?' }), 'input-required').task;
  const ask = { message: 'stream 400 100', idempotency_key: 'on' };
  const working = signal();
  const cut = failure(client.call('ask_agent', ask, { onprogress: working.give, timeout: 5000 }));
  await working.given;
  const task = await begin(client, ask.message, { idempotency_key: ask.idempotency_key });
  await server.kill();
  await cut;
  await server.begin();
  // The same client goes on: a session of the legacy era is in its id.
  assert.equal((await client.call('get_task', { task })).structuredContent.task, task);
  assert.equal(words(await client.call('get_task', { task: finished })), 'echo: hello');
  assert.equal(words(await client.call('answer_task', { task: asking, answer: 'Monday' })), 'echo: Monday');
  await client.call('cancel_task', { task });
  await inState(client, task, 'canceled', 'failed', 'completed');
}

export async function aQuestionIsAnsweredAfterAKillOfTheServer(stage) {
  const server = await stage.ownServer();
  const answer = user('accept', { answer: 'Monday' });
  // Answers once the server that asked is gone, and another has taken its place.
  const elicit = async (params) => {
    await server.kill();
    await server.begin();
    return answer(params);
  };
  const ask = { message: 'ask which day?', idempotency_key: 'one' };
  const call = (await stage.client({ server, elicit })).call('ask_agent', ask, { timeout: 10_000 });
  if (stage.isModern) assert.equal(words(await call), 'echo: Monday');
  // The call was waiting at the server that is gone; the answer has come all the same.
  else await failure(call);
  const result = await (await stage.client({ server })).call('ask_agent', ask);
  assert.equal(words(result), 'echo: Monday');
  assert.equal(answer.questions.length, 1);
  assert.equal(await server.numberOfTasks(), 1);
}

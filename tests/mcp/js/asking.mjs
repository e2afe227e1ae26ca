// Agents are asked and answer, at once or later.

import assert from 'node:assert/strict';

import { begin, dataOf, inState, words } from './stage.mjs';

export async function anAgentAnswers(stage) {
  const client = await stage.client();
  for (const [tool, more] of [['ask_agent', {}], ['ask_agent', { agent: 'demo' }], ['ask_demo', {}]]) {
    const result = await client.call(tool, { message: 'hello', ...more });
    assert.equal(words(result), 'echo: hello');
    const { agent, answer, next } = dataOf(result, 'completed');
    assert.deepEqual({ agent, answer, next }, { agent: 'demo', answer: 'echo: hello', next: undefined });
  }
}

export async function progressGrowsWhileAnAgentWorks(stage) {
  const client = await stage.client();
  for (const [message, expected, fewest] of [
    ['slow 3 done', /echo: slow 3 done/, 1],
    ['stream 20 100', /chunk 20/, 10],
  ]) {
    const numbers = [];
    let isOver = false;
    const onprogress = ({ progress }) => {
      assert(!isOver, 'progress after the end');
      numbers.push(progress);
    };
    const result = await client.call('ask_agent', { message }, { onprogress });
    isOver = true;
    assert.match(words(result), expected);
    assert(numbers.length >= fewest, `${message}: ${numbers}`);
    assert(numbers.every((number, index) => index === 0 || number > numbers[index - 1]), `${message}: ${numbers}`);
  }
}

export async function progressKeepsACallFromTimingOut(stage) {
  const client = await stage.client();
  const options = { timeout: 2500, resetTimeoutOnProgress: true, onprogress: () => {} };
  const result = await client.call('ask_agent', { message: 'stream 50 100' }, options);
  assert.match(words(result), /chunk 50/);
}

export async function aWaitOfNoSecondsReturnsTheIdOfTheTask(stage) {
  const client = await stage.client();
  const result = await client.call('ask_agent', { message: 'slow 2 later', wait_seconds: 0 });
  const { task, next, state } = result.structuredContent;
  assert(['submitted', 'working'].includes(state) && next === 'wait_task' && words(result).includes(task), words(result));
  for (const tool of ['wait_task', 'get_task']) {
    assert.equal(words(await client.call(tool, { task })), 'echo: slow 2 later');
  }
}

export async function aContextRemembers(stage) {
  const client = await stage.client();
  const { context, task } = dataOf(await client.call('ask_agent', { message: 'the first words' }), 'completed');
  const result = await client.call('ask_agent', { message: 'history', context });
  assert.match(words(result), /the first words/);
  assert(dataOf(result, 'completed').context === context && result.structuredContent.task !== task);
}

export async function aRepeatedCallWithOneKeyMakesOneTask(stage) {
  const client = await stage.client();
  const before = await stage.server.numberOfTasks();
  const idempotency_key = `once-${Math.random()}`;
  const task = await begin(client, 'slow 2 once', { idempotency_key });
  for (let time = 0; time < 2; time += 1) {
    const result = await client.call('ask_agent', { message: 'slow 2 once', idempotency_key });
    assert.equal(dataOf(result, 'completed').task, task);
  }
  assert.equal(await stage.server.numberOfTasks(), before + 1);
}

export async function aFailedTaskIsAnErrorThatGivesTheReason(stage) {
  const client = await stage.client();
  for (const [message, state] of [['fail the disk is full', 'failed'], ['reject the disk is full', 'rejected']]) {
    const result = await client.call('ask_agent', { message });
    assert(result.isError && words(result).includes('the disk is full'), words(result));
    dataOf(result, state);
  }
}

export async function cancelTaskStopsIt(stage) {
  const client = await stage.client();
  const task = await begin(client, 'slow 50 never');
  assert.equal((await client.call('cancel_task', { task })).structuredContent.task, task);
  await inState(client, task, 'canceled');
}

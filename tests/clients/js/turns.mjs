// Conversations: a task that asks and is answered, a context that several tasks share.

import assert from 'node:assert/strict';
import { textOf } from './frames.mjs';

export const turns = {
  'ask waits for an answer and goes on as the same task': async (client) => {
    const asking = await client.send('ask Which day?');
    assert.equal(asking.state, 'input-required');
    assert.equal(asking.message?.role, 'agent');
    assert.deepEqual(asking.message.parts, [{ text: 'Which day?' }]);

    const answered = await client.send('Friday', { taskId: asking.id });
    assert.equal(answered.id, asking.id);
    assert.equal(answered.contextId, asking.contextId);
    assert.equal(answered.state, 'completed');
    assert.deepEqual(answered.artifacts.map(({ parts }) => parts), [[{ text: 'echo: Friday' }]]);
    assert.deepEqual(spoken(answered), ['user: ask Which day?', 'agent: Which day?', 'user: Friday']);
  },

  'an answer may name the context beside the task': async (client) => {
    const { id, contextId } = await client.send('ask Which berth?');
    const answered = await client.send('Four', { taskId: id, contextId });
    assert.equal(answered.id, id);
    assert.equal(answered.state, 'completed');
  },

  'auth waits for credentials and goes on as the same task': async (client) => {
    const waiting = await client.send('auth token please');
    assert.equal(waiting.state, 'auth-required');
    assert.deepEqual(waiting.message?.parts, [{ text: 'token please' }]);
    const answered = await client.send('here it is', { taskId: waiting.id });
    assert.equal(answered.id, waiting.id);
    assert.equal(answered.state, 'completed');
  },

  'a waiting task can be canceled': async (client) => {
    const { id } = await client.send('ask Which day?');
    assert.equal((await client.cancel(id)).state, 'canceled');
  },

  'get cuts the history to its newest messages': async (client) => {
    const { id } = await client.send('ask Which day?');
    await client.send('Friday', { taskId: id });
    const newest = async (historyLength) => spoken(await client.get(id, { historyLength }));
    const whole = ['user: ask Which day?', 'agent: Which day?', 'user: Friday'];
    assert.deepEqual(await newest(undefined), whole);
    assert.deepEqual(await newest(1), whole.slice(-1));
    assert.deepEqual(await newest(2), whole.slice(-2));
    assert.deepEqual(await newest(100), whole);
  },

  'send cuts the history of its answer too': async (client) => {
    const { id } = await client.send('ask Which day?');
    const answered = await client.send('Friday', { taskId: id, historyLength: 1 });
    assert.deepEqual(spoken(answered), ['user: Friday']);
  },

  'two sends with one contextId share it': async (client) => {
    const first = await client.send('one');
    const second = await client.send('two', { contextId: first.contextId });
    assert.equal(second.contextId, first.contextId);
    assert.notEqual(second.id, first.id);
  },

  'contexts are kept apart': async (client) => {
    const [first, second] = [await client.send('one'), await client.send('two')];
    assert.notEqual(second.contextId, first.contextId);
  },

  'the agent remembers what was said in the context': async (client) => {
    const { contextId } = await client.send('the first mate is Ada');
    await client.send('the cook is Bo', { contextId });
    await client.send('nobody asked');
    const told = textOf((await client.send('history', { contextId })).artifacts[0].parts);
    const [ada, bo] = [told.indexOf('the first mate is Ada'), told.indexOf('the cook is Bo')];
    assert.ok(ada >= 0 && bo > ada && !told.includes('nobody asked'), `the history reads: ${told}`);
  },
};

/** `role: text` of every message in the history. */
export function spoken(task) {
  return task.history.map(({ role, parts }) => `${role}: ${textOf(parts)}`);
}

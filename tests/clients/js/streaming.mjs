// Streams: what they show, in which order, where they end, and how a broken one is picked up.

import assert from 'node:assert/strict';
import { all, assembled, chunks, firstChunks, outline, textOf } from './frames.mjs';
import { finished } from './waiting.mjs';

export const streaming = {
  'a stream shows the task, its work and every chunk of one artifact': async (client) => {
    const frames = await all(client.stream('stream 5 20'));
    assert.deepEqual(outline(frames), [
      'task submitted', 'working', 'chunk', 'chunk', 'chunk', 'chunk', 'last chunk', 'completed',
    ]);
    const [task, ...updates] = frames;
    assert.ok(updates.every(({ taskId }) => taskId === task.id), 'every update names the task');
    assert.ok(updates.every(({ contextId }) => contextId === task.contextId), 'every update names the context');

    const parts = frames.filter(({ kind }) => kind === 'artifact');
    assert.equal(new Set(parts.map(({ artifact }) => artifact.id)).size, 1, 'one artifact id');
    if (client.showsAppend) {
      assert.deepEqual(parts.map(({ append }) => append), [false, true, true, true, true]);
    }
    assert.equal(parts.map(({ artifact }) => textOf(artifact.parts)).join(''), chunks(5));
  },

  'get after a stream shows one joined artifact': async (client) => {
    const frames = await all(client.stream('stream 5 20'));
    const { state, artifacts } = await client.get(frames[0].id);
    assert.equal(state, 'completed');
    assert.equal(artifacts.length, 1);
    assert.equal(artifacts[0].id, frames.find(({ kind }) => kind === 'artifact').artifact.id);
    assert.equal(textOf(artifacts[0].parts), chunks(5));
  },

  'a thousand chunks without a pause arrive complete and in order': async (client) => {
    const frames = await all(client.stream('stream 1000 0'));
    assert.deepEqual([...assembled(frames, client).values()], [chunks(1000)]);
    assert.equal(frames.at(-1).state, 'completed');
  },

  'a broken stream is picked up by subscribing': async (client) => {
    const before = await firstChunks((signal) => client.stream('stream 20 50', { signal }), 3);
    const { id } = before[0];
    const after = await all(client.subscribe(id));

    assert.equal(after[0].kind, 'task', 'the first frame is the snapshot');
    assert.equal(after[0].id, id);
    assert.equal(after[0].state, 'working');
    const held = [...assembled(after.slice(0, 1), client).values()][0];
    assert.ok(chunks(20).startsWith(held) && held !== chunks(20), `the snapshot is a beginning: ${held}`);
    assert.deepEqual([...assembled(after, client).values()], [chunks(20)], 'each chunk exactly once');
    assert.deepEqual(outline(after).slice(-2), ['last chunk', 'completed']);
  },

  'two readers of one task see the same end': async (client) => {
    const first = client.stream('stream 20 50');
    const { value: task } = await first.next();
    const [one, two] = await Promise.all([all(first), all(client.subscribe(task.id))]);
    assert.deepEqual(assembled([task, ...one], client), assembled(two, client));
    assert.deepEqual(one.slice(-5), two.slice(-5));
  },

  'a broken stream does not stop the task': async (client) => {
    const [{ id }] = await firstChunks((signal) => client.stream('stream 10 50', { signal }), 2);
    const task = await finished(client, id);
    assert.equal(task.state, 'completed');
    assert.equal(textOf(task.artifacts[0].parts), chunks(10));
  },

  'cancel ends the stream of the task': async (client) => {
    const stream = client.stream('slow 30 never');
    const { value: task } = await stream.next();
    await client.cancel(task.id);
    const rest = await all(stream);
    assert.equal(rest.at(-1).kind, 'status');
    assert.equal(rest.at(-1).state, 'canceled');
  },

  'the stream of a question ends by itself': async (client) => {
    const frames = await all(client.stream('ask Which day?'));
    assert.deepEqual(outline(frames), ['task submitted', 'working', 'input-required']);
    assert.deepEqual(frames.at(-1).message?.parts, [{ text: 'Which day?' }]);
  },

  'an answer can be streamed': async (client) => {
    const { id, contextId } = await client.send('ask Which day?');
    const frames = await all(client.stream('Friday', { taskId: id }));
    assert.equal(frames[0].kind, 'task', 'the first frame is the task');
    assert.equal(frames[0].id, id);
    assert.equal(frames[0].contextId, contextId);
    assert.deepEqual([...assembled(frames, client).values()], ['echo: Friday']);
    assert.equal(frames.at(-1).state, 'completed');
  },

  'the stream of a direct reply is one message': async (client) => {
    const frames = await all(client.stream('message hi there'));
    assert.deepEqual(outline(frames), ['message']);
    const [reply] = frames;
    assert.equal(reply.role, 'agent');
    assert.deepEqual(reply.parts, [{ text: 'hi there' }]);
    assert.equal(reply.taskId, undefined);
  },

  'the stream of a failure ends with its reason': async (client) => {
    const frames = await all(client.stream('fail boom'));
    assert.deepEqual(outline(frames), ['task submitted', 'working', 'failed']);
    assert.deepEqual(frames.at(-1).message?.parts, [{ text: 'boom' }]);
  },
};

// The 1.x SDK has a 0.3 client inside, for cards that list nothing newer, and over gRPC it is a service of its own.

import assert from 'node:assert/strict';
import { connectByGrpc } from './client_v1.mjs';
import { all, assembled, chunks } from './frames.mjs';

/** The same client, shown only the card's 0.3 interfaces. */
async function older({ card }) {
  const supportedInterfaces = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3');
  const client = await connectByGrpc('http:', { ...card, supportedInterfaces }, undefined, { enabled: true });
  assert.equal(client.sdk.protocolVersion, '0.3');
  // On the way from 0.3 the SDK drops it.
  client.showsAppend = false;
  return client;
}

export const compatByGrpc = {
  'the older client inside the SDK is served': async (client) => {
    const old = await older(client);
    const task = await old.send('hello');
    assert.equal(task.state, 'completed');
    assert.deepEqual((await old.get(task.id)).artifacts, (await client.get(task.id)).artifacts);
  },

  'the older client inside the SDK can stream': async (client) => {
    const old = await older(client);
    const frames = await all(old.stream('stream 5 20'));
    assert.deepEqual([...assembled(frames, old).values()], [chunks(5)]);
    assert.equal(frames.at(-1).state, 'completed');
  },

  'the older client inside the SDK can watch and cancel': async (client) => {
    const old = await older(client);
    const { id } = await old.send('slow 30', { immediately: true });
    const watching = old.subscribe(id);
    assert.equal((await watching.next()).value.id, id);
    assert.equal((await old.cancel(id)).state, 'canceled');
    assert.equal((await all(watching)).at(-1).state, 'canceled');
  },

  'the older client inside the SDK has webhooks': async (client) => {
    const old = await older(client);
    const { id: taskId } = await old.send('ask Which day?');
    const webhook = { id: 'hook', url: 'http://127.0.0.1:1/hook' };
    assert.deepEqual(await old.webhooks.set(taskId, webhook), { taskId, ...webhook });
    assert.deepEqual(await old.webhooks.get(taskId, 'hook'), { taskId, ...webhook });
    assert.deepEqual(await old.webhooks.list(taskId), [{ taskId, ...webhook }]);
    await old.webhooks.delete(taskId, 'hook');
    assert.deepEqual(await old.webhooks.list(taskId), []);
  },

  // It looks for details, which 0.3 does not have, and shows code and text.
  'the older client inside the SDK is told of an unknown task': async (client) => {
    const old = await older(client);
    await assert.rejects(old.get('no-such-task'), (error) => {
      assert.equal(error.status, 5);
      assert.match(error.message, /TaskNotFoundError: task no-such-task does not exist/);
      return true;
    });
  },
};

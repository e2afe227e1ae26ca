// Webhooks: set, read, listed and deleted by the SDK's calls, and what a real receiver gets.

import assert from 'node:assert/strict';
import { all, chunks, textOf } from './frames.mjs';
import { Receiver } from './receiver.mjs';
import { refused } from './refused.mjs';

const TOKEN = 'the-token-of-the-hook';

export const webhooks = {
  'the card says that push is offered': async ({ card }) => {
    assert.equal(card.capabilities.pushNotifications, true);
  },

  'a webhook is set and read without its token': (client) =>
    Receiver.during(async (receiver) => {
      const { id: taskId } = await client.send('ask Which day?');
      const wanted = { taskId, id: 'hook', url: receiver.url() };
      assert.deepEqual(await client.webhooks.set(taskId, { id: 'hook', url: receiver.url(), token: TOKEN }), wanted);
      assert.deepEqual(await client.webhooks.get(taskId, 'hook'), wanted);
    }),

  'webhooks are listed': (client) =>
    Receiver.during(async (receiver) => {
      const { id: taskId } = await client.send('ask Which day?');
      assert.deepEqual(await client.webhooks.list(taskId), []);
      const several = ['a', 'b'].map((id) => ({ id, url: receiver.url(`/${id}`) }));
      for (const webhook of several) {
        await client.webhooks.set(taskId, { ...webhook, token: TOKEN });
      }
      assert.deepEqual(await client.webhooks.list(taskId), several.map((webhook) => ({ taskId, ...webhook })));
    }),

  'a deleted webhook is gone and gets nothing': (client) =>
    Receiver.during(async (receiver) => {
      const { id: taskId, contextId } = await client.send('ask Which day?');
      for (const id of ['kept', 'deleted']) {
        await client.webhooks.set(taskId, { id, url: receiver.url(`/${id}`), token: TOKEN });
      }
      // It may be repeated.
      for (let times = 0; times < 2; times += 1) {
        await client.webhooks.delete(taskId, 'deleted');
        assert.deepEqual((await client.webhooks.list(taskId)).map(({ id }) => id), ['kept']);
      }
      await client.send('Friday', { taskId, contextId });
      const seen = await receiver.until(client.readDelivery, 'completed');
      assert.deepEqual([...new Set(seen.map(({ path }) => path))], ['/kept']);
    }),

  'a webhook that is set after the end gets the end': (client) =>
    Receiver.during(async (receiver) => {
      const task = await client.send('hello');
      await client.webhooks.set(task.id, { id: 'hook', url: receiver.url(), token: TOKEN });
      const seen = await receiver.until(client.readDelivery, 'completed');
      assert.equal(seen.length, 1);
      isEndOf(task, seen);
    }),

  'a message brings its webhook': (client) =>
    Receiver.during(async (receiver) => {
      const webhook = { id: 'hook', url: receiver.url('/a?b=c') };
      const task = await client.send('hello', { webhook: { ...webhook, token: TOKEN } });
      const seen = await receiver.until(client.readDelivery, 'completed');
      assert.deepEqual(seen.map(({ told }) => told.state), ['working', 'completed']);
      isEndOf(task, seen);
      for (const { method, path, headers } of seen) {
        assert.deepEqual([method, path], ['POST', '/a?b=c']);
        // This is the header in which the receivers of the SDKs look for the token.
        assert.equal(headers['x-a2a-notification-token'], TOKEN);
        assert.equal(headers['content-type'], client.deliveryType);
      }
      assert.equal(new Set(seen.map(({ headers }) => headers['webhook-id'])).size, seen.length);
      assert.deepEqual(await client.webhooks.list(task.id), [{ taskId: task.id, ...webhook }]);
    }),

  'a streamed message brings its webhook': (client) =>
    Receiver.during(async (receiver) => {
      await all(client.stream('stream 3 0', { webhook: { id: 'hook', url: receiver.url(), token: TOKEN } }));
      const { told } = (await receiver.until(client.readDelivery, 'completed')).at(-1);
      assert.equal(textOf(told.artifacts[0].parts), chunks(3));
    }),

  'a webhook hears of the question and of what follows': (client) =>
    Receiver.during(async (receiver) => {
      const webhook = { id: 'hook', url: receiver.url(), token: TOKEN };
      const { id: taskId, contextId } = await client.send('ask Which day?', { webhook });
      const { told } = (await receiver.until(client.readDelivery, 'input-required')).at(-1);
      assert.equal(textOf(told.message.parts), 'Which day?');
      await client.send('Friday', { taskId, contextId });
      const seen = await receiver.until(client.readDelivery, 'completed');
      assert.deepEqual(seen.map(({ told }) => told.state), ['working', 'completed']);
    }),

  'a webhook to a private address is InvalidParams': async (client) => {
    const { id } = await client.send('ask Which day?');
    for (const url of ['http://10.0.0.1/hook', 'http://169.254.169.254/latest', 'file:///etc/passwd']) {
      const webhook = { id: 'hook', url, token: TOKEN };
      await refused(client, 'InvalidParams', () => client.webhooks.set(id, webhook));
      await refused(client, 'InvalidParams', () => client.send('hello', { webhook }));
    }
    assert.deepEqual(await client.webhooks.list(id), [], 'nothing is stored');
  },

  'a webhook of an unknown task is TaskNotFound': (client) =>
    Receiver.during(async (receiver) => {
      const webhook = { id: 'hook', url: receiver.url(), token: TOKEN };
      await refused(client, 'TaskNotFound', () => client.webhooks.set('no-such-task', webhook));
      await refused(client, 'TaskNotFound', () => client.webhooks.get('no-such-task', 'hook'));
      await refused(client, 'TaskNotFound', () => client.webhooks.list('no-such-task'));
    }),
};

function isEndOf(task, seen) {
  const { told } = seen.at(-1);
  assert.equal(told.kind, 'task', 'the end is a whole task');
  assert.deepEqual([told.id, told.contextId, told.state], [task.id, task.contextId, task.state]);
  assert.deepEqual(told.artifacts, task.artifacts);
}

// Listing tasks, which only 1.0 can: filters, order, pages.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from './frames.mjs';
import { refused } from './refused.mjs';

export const listing = {
  'list shows the tasks of a context, newest first': async (client) => {
    const { contextId, newestFirst } = await threeTasks(client);
    const page = await client.list({ contextId });
    assert.deepEqual(page.tasks.map(({ id }) => id), newestFirst.map(({ id }) => id));
    assert.equal(page.totalSize, 3);
    assert.equal(page.nextPageToken, '');
    assert.ok(page.tasks.every((task) => task.contextId === contextId));
  },

  'list filters by status within a context': async (client) => {
    const { contextId, newestFirst } = await threeTasks(client);
    const [, failed] = newestFirst;
    const page = await client.list({ contextId, status: 'failed' });
    assert.deepEqual(page.tasks.map(({ id, state }) => [id, state]), [[failed.id, 'failed']]);
    assert.equal(page.totalSize, 1);
    assert.deepEqual((await client.list({ contextId, status: 'canceled' })).tasks, []);
  },

  'list filters by the time of the last status': async (client) => {
    const { contextId, newestFirst } = await threeTasks(client);
    const { timestamp } = newestFirst[1];
    const page = await client.list({ contextId, statusTimestampAfter: timestamp });
    assert.deepEqual(page.tasks.map(({ id }) => id), newestFirst.slice(0, 2).map(({ id }) => id));
  },

  'list goes through its pages one by one': async (client) => {
    const { contextId, newestFirst } = await threeTasks(client);
    const seen = [];
    let pageToken = '';
    do {
      const page = await client.list({ contextId, pageSize: 1, pageToken });
      assert.equal(page.tasks.length, 1);
      assert.equal(page.pageSize, 1);
      assert.equal(page.totalSize, 3);
      seen.push(page.tasks[0].id);
      pageToken = page.nextPageToken;
    } while (pageToken && seen.length < 10);
    assert.deepEqual(seen, newestFirst.map(({ id }) => id));
  },

  'list shows artifacts only when asked': async (client) => {
    const { id, contextId } = await client.send('hello');
    const [bare] = (await client.list({ contextId })).tasks;
    assert.deepEqual(bare.artifacts, []);
    const [full] = (await client.list({ contextId, includeArtifacts: true })).tasks;
    assert.equal(full.id, id);
    assert.equal(textOf(full.artifacts[0].parts), 'echo: hello');
  },

  'list cuts the history as it is told': async (client) => {
    const { contextId } = await client.send('hello');
    assert.deepEqual((await client.list({ contextId, historyLength: 0 })).tasks[0].history, []);
    assert.equal((await client.list({ contextId, historyLength: 1 })).tasks[0].history.length, 1);
  },

  'a context without tasks lists as empty': async (client) => {
    const { contextId } = await client.send('message hi there');
    const page = await client.list({ contextId });
    assert.deepEqual([page.tasks, page.totalSize, page.nextPageToken], [[], 0, '']);
  },

  'a page of 1000 is InvalidParams': (client) =>
    refused(client, 'InvalidParams', () => client.list({ pageSize: 1000 })),

  'a page of 0 is InvalidParams': (client) =>
    refused(client, 'InvalidParams', () => client.list({ pageSize: 0 })),

  'a page token that we did not give is InvalidParams': (client) =>
    refused(client, 'InvalidParams', () => client.list({ pageToken: 'made up' })),

  'a negative historyLength is InvalidParams': async (client) => {
    const { id, contextId } = await client.send('hello');
    await refused(client, 'InvalidParams', () => client.get(id, { historyLength: -1 }));
    await refused(client, 'InvalidParams', () => client.list({ contextId, historyLength: -1 }));
    await refused(client, 'InvalidParams', () => client.send('hello', { historyLength: -1 }));
  },
};

/** A context with a completed, then a failed, then an asking task; their times differ for sure. */
async function threeTasks(client) {
  const first = await client.send('hello');
  const tasks = [first];
  for (const text of ['fail boom', 'ask Which day?']) {
    await sleep(5);
    tasks.push(await client.send(text, { contextId: first.contextId }));
  }
  return { contextId: first.contextId, newestFirst: tasks.reverse() };
}

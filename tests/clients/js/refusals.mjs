// What the server must refuse, and the error that a user of the SDK then catches.

import assert from 'node:assert/strict';
import { refused } from './refused.mjs';

const NOWHERE = 'no-such-task';

export const refusals = {
  'get of an unknown task is TaskNotFound and names it': async (client) => {
    const error = await refused(client, 'TaskNotFound', () => client.get(NOWHERE));
    if (client.showsErrorData) {
      assert.equal(client.taskNamedBy(error), NOWHERE);
    }
  },

  'cancel of an unknown task is TaskNotFound': (client) =>
    refused(client, 'TaskNotFound', () => client.cancel(NOWHERE)),

  'subscribing to an unknown task is TaskNotFound': (client) =>
    refused(client, 'TaskNotFound', () => client.subscribe(NOWHERE)),

  'a message to an unknown task is TaskNotFound': (client) =>
    refused(client, 'TaskNotFound', () => client.send('hello', { taskId: NOWHERE })),

  'a streamed message to an unknown task is TaskNotFound': (client) =>
    refused(client, 'TaskNotFound', () => client.stream('hello', { taskId: NOWHERE })),

  'cancel of a completed task is TaskNotCancelable': async (client) => {
    const { id } = await client.send('hello');
    await refused(client, 'TaskNotCancelable', () => client.cancel(id));
  },

  'cancel of a canceled task is TaskNotCancelable': async (client) => {
    const { id } = await client.send('slow 30 never', { immediately: true });
    await client.cancel(id);
    await refused(client, 'TaskNotCancelable', () => client.cancel(id));
  },

  'a message to a finished task is UnsupportedOperation': async (client) => {
    const { id } = await client.send('hello');
    await refused(client, 'UnsupportedOperation', () => client.send('more', { taskId: id }));
  },

  'a streamed message to a finished task is UnsupportedOperation': async (client) => {
    const { id } = await client.send('hello');
    await refused(client, 'UnsupportedOperation', () => client.stream('more', { taskId: id }));
  },

  'a contextId that is not the one of the task is InvalidParams': async (client) => {
    const { id } = await client.send('ask Which day?');
    const other = await client.send('hello');
    await refused(client, 'InvalidParams', () => client.send('Friday', { taskId: id, contextId: other.contextId }));
    assert.equal((await client.get(id)).state, 'input-required', 'the task was left alone');
  },

  'a message without parts is InvalidParams': (client) => refused(client, 'InvalidParams', () => client.send([])),

  'a streamed message without parts is InvalidParams': (client) =>
    refused(client, 'InvalidParams', () => client.stream([])),
};

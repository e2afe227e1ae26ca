// Sending, waiting, asking again, canceling: one request, one answer.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { textOf } from './frames.mjs';
import { finished } from './waiting.mjs';

const MANIFEST = {
  bytes: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0x0a, 0x0d, 0x41]).toString('base64'),
  name: 'cargo manifest.bin',
  type: 'application/octet-stream',
  metadata: { sealed: true },
};
const PLAN = { url: 'https://example.com/a%20plan.pdf?page=1&size=a4', name: 'plan.pdf', type: 'application/pdf' };
const BERTH = {
  data: {
    berth: 4,
    depth: -12.75,
    biggest: Number.MAX_SAFE_INTEGER,
    tiny: 1e-7,
    name: 'Quai "Nord" \\ \u00e9t\u00e9 \u{1F6A2}\n',
    cranes: [{ id: 'c1', lifts: [0, 1.5, 1e21] }, null, [], {}, ''],
    open: false,
  },
  metadata: { source: { table: 'berths', row: 17 } },
};

export const sending = {
  'a blocking send returns the completed task': async (client) => {
    const task = await client.send('hello');
    assert.equal(task.kind, 'task');
    assert.equal(task.state, 'completed');
    assert.ok(task.id && task.contextId, 'a task has an id and a contextId');
    assert.deepEqual(task.artifacts.map(({ name, parts }) => ({ name, parts })), [
      { name: 'result', parts: [{ text: 'echo: hello' }] },
    ]);
    assert.ok(task.artifacts[0].id, 'an artifact has an id');
    assert.match(task.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  },

  'the history holds the message as it was sent': async (client) => {
    const [messageId, metadata] = [randomUUID(), { trace: { id: 'abc', hops: [1, 2.5] } }];
    const task = await client.send('hello', { messageId, metadata });
    const [first] = task.history;
    assert.equal(first.id, messageId);
    assert.equal(first.role, 'user');
    assert.deepEqual(first.parts, [{ text: 'hello' }]);
    assert.deepEqual(first.metadata, metadata);
  },

  'text survives quotes, line breaks and every script': async (client) => {
    const text =
      'Gr\u00fc\u00dfe, "\u4e16\u754c" \\ </script>\n\ttab \u{1F44B}\u{1F3FD} \u0645\u0631\u062d\u0628\u0627';
    const task = await client.send(text);
    assert.deepEqual(task.artifacts[0].parts, [{ text: `echo: ${text}` }]);
  },

  'text, file bytes, file url and data come back in order': async (client) => {
    const task = await client.send([{ text: 'parts' }, MANIFEST, PLAN, BERTH]);
    const carried = [MANIFEST, PLAN, BERTH].map(client.visible);
    assert.equal(task.state, 'completed');
    assert.deepEqual(task.artifacts[0].parts, [{ text: 'echo: parts' }, ...carried]);
    assert.deepEqual(task.history[0].parts, [{ text: 'parts' }, ...carried]);
  },

  'a message without text is echoed without text': async (client) => {
    const task = await client.send([BERTH, MANIFEST]);
    assert.deepEqual(task.artifacts[0].parts, [BERTH, MANIFEST].map(client.visible));
  },

  'an immediate send answers at once and the task completes by itself': async (client) => {
    const first = await client.send('slow 1 hi', { immediately: true });
    assert.ok(['submitted', 'working'].includes(first.state), `not at once: ${first.state}`);
    const task = await finished(client, first.id);
    assert.equal(task.id, first.id);
    assert.equal(task.state, 'completed');
    assert.match(textOf(task.artifacts[0].parts), /^echo: .*hi$/);
  },

  'get returns the task as the send did': async (client) => {
    const sent = await client.send('hello again');
    assert.deepEqual(await client.get(sent.id), sent);
  },

  'cancel ends a working task': async (client) => {
    const { id } = await client.send('slow 30 never', { immediately: true });
    const canceled = await client.cancel(id);
    assert.equal(canceled.id, id);
    assert.equal(canceled.state, 'canceled');
    assert.equal((await client.get(id)).state, 'canceled');
  },

  'fail ends as failed and says why': (client) => endsAs(client, 'fail boom', 'failed', 'boom'),
  'reject ends as rejected and says why': (client) => endsAs(client, 'reject no', 'rejected', 'no'),

  'a direct reply is a message and no task': async (client) => {
    const reply = await client.send('message hi there');
    assert.equal(reply.kind, 'message');
    assert.equal(reply.role, 'agent');
    assert.deepEqual(reply.parts, [{ text: 'hi there' }]);
    assert.ok(reply.id && reply.contextId, 'a reply has a messageId and a contextId');
    assert.equal(reply.taskId, undefined);
  },

  'file gives a file with bytes': (client) =>
    gives(client, 'file', {
      bytes: Buffer.from('Hello file').toString('base64'),
      name: 'output.txt',
      type: 'text/plain',
    }),
  'url gives a file with a url': (client) =>
    gives(client, 'url', { url: 'https://example.com/output.txt', name: 'output.txt', type: 'text/plain' }),
  'data gives a data part': (client) => gives(client, 'data', { data: { key: 'value', count: 42 } }),
};

async function endsAs(client, text, state, reason) {
  const task = await client.send(text);
  assert.equal(task.state, state);
  assert.equal(task.message?.role, 'agent');
  assert.deepEqual(task.message.parts, [{ text: reason }]);
  assert.deepEqual(task.artifacts, []);
}

async function gives(client, text, part) {
  const task = await client.send(text);
  assert.equal(task.state, 'completed');
  assert.equal(task.artifacts.length, 1);
  assert.deepEqual(task.artifacts[0].parts, [client.visible(part)]);
}

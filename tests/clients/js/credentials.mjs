// Callers with credentials over HTTPS: the SDK's fetch with authentication shows what the server asks for.

import assert from 'node:assert/strict';
import { all, assembled, chunks } from './frames.mjs';
import { Receiver } from './receiver.mjs';
import { refused } from './refused.mjs';
import { Caller } from './secured.mjs';

// One that shows a bearer token, and one that shows an API key.
const CALLERS = ['alice', 'robot'];

/** Runs `body` with the client of each caller. */
const forEachCaller = async (server, body) => {
  for (const name of CALLERS) {
    await body(await server.client(name), name);
  }
};

/** Calls `ask` and insists that it fails, and that the server said this status. */
async function shutOut(client, status, ask) {
  let answer;
  client.caller.status = undefined;
  try {
    answer = await ask();
    answer = answer?.[Symbol.asyncIterator] ? await all(answer) : answer;
  } catch (error) {
    assert.ok(error instanceof Error, 'the SDK throws an error');
    assert.equal(client.statusOf?.(error) ?? client.caller.status, status, `after ${error.message}`);
    return;
  }
  assert.fail(`expected status ${status}, got an answer: ${JSON.stringify(answer)}`);
}

/** Whatever it asks, and whether or not there is such a task. */
async function isShutOut(client) {
  const webhook = { id: 'hook', url: 'http://127.0.0.1:1/' };
  for (const ask of [
    () => client.send('hello'),
    () => client.send('hello', { taskId: 'no-such-task' }),
    () => client.stream('hello'),
    () => client.subscribe('no-such-task'),
    () => client.get('no-such-task'),
    () => client.cancel('no-such-task'),
    () => client.webhooks.set('no-such-task', webhook),
    () => client.webhooks.get('no-such-task', 'hook'),
    () => client.webhooks.list('no-such-task'),
    () => client.webhooks.delete('no-such-task', 'hook'),
    ...(client.list ? [() => client.list()] : []),
  ]) {
    await shutOut(client, 401, ask);
  }
}

export const credentials = {
  'the card says which credentials count': async (server) => {
    const { bearer, apiKey } = (await server.nobody()).security();
    assert.deepEqual(bearer, ['http', 'Bearer']);
    assert.deepEqual([apiKey[0], apiKey[1].toLowerCase()], ['apiKey', 'x-api-key']);
  },

  'callers with credentials send and get': (server) =>
    forEachCaller(server, async (client, name) => {
      const { id, state } = await client.send('hello');
      assert.equal(state, 'completed', name);
      assert.equal((await client.get(id)).id, id);
    }),

  'a credential that the card asks for is shown at once': async (server) => {
    const schemes = (await server.nobody()).security();
    for (const name of CALLERS) {
      const client = await server.clientOf(new Caller(server.told.callers[name]).knowing(schemes));
      assert.equal((await client.send('hello')).state, 'completed');
      assert.equal(client.caller.retries, 0);
    }
  },

  'callers with credentials continue a task': (server) =>
    forEachCaller(server, async (client) => {
      const { id, contextId } = await client.send('ask Which day?');
      const done = await client.send('Friday', { taskId: id, contextId });
      assert.deepEqual([done.id, done.state], [id, 'completed']);
    }),

  'callers with credentials stream and come back to a stream': (server) =>
    forEachCaller(server, async (client) => {
      const frames = await all(client.stream('stream 5 0'));
      assert.deepEqual([...assembled(frames, client).values()], [chunks(5)]);
      const { id } = await client.send('stream 10 50', { immediately: true });
      const rest = await all(client.subscribe(id));
      assert.deepEqual([...assembled(rest, client).values()], [chunks(10)]);
    }),

  'callers with credentials cancel': (server) =>
    forEachCaller(server, async (client) => {
      const { id } = await client.send('slow 30', { immediately: true });
      assert.equal((await client.cancel(id)).state, 'canceled');
    }),

  'callers with credentials have webhooks': (server) =>
    Receiver.during((receiver) =>
      forEachCaller(server, async (client) => {
        const { id: taskId, contextId } = await client.send('ask Which day?');
        const wanted = { taskId, id: 'hook', url: receiver.url() };
        assert.deepEqual(await client.webhooks.set(taskId, { id: 'hook', url: receiver.url(), token: 't' }), wanted);
        assert.deepEqual(await client.webhooks.get(taskId, 'hook'), wanted);
        assert.deepEqual(await client.webhooks.list(taskId), [wanted]);
        await client.send('Friday', { taskId, contextId });
        await receiver.until(client.readDelivery, 'completed');
        await client.webhooks.delete(taskId, 'hook');
        assert.deepEqual(await client.webhooks.list(taskId), []);
      }),
    ),

  'the extended card is for callers with credentials': async (server) => {
    const nobody = await server.nobody();
    await shutOut(nobody, 401, () => nobody.fullCard());
    await forEachCaller(server, async (client) => {
      assert.equal((await client.fullCard()).name, client.card.name);
      assert.equal((await client.send('hello')).state, 'completed', 'the client goes on with the new card');
    });
  },

  'a caller without a credential is told 401': async (server) => isShutOut(await server.nobody()),

  'a caller with a wrong credential is told 401': async (server) => {
    for (const scheme of ['bearer', 'apiKey']) {
      await isShutOut(await server.clientOf(new Caller({ scheme, secret: 'a-secret-that-nobody-has' })));
    }
  },

  'the task of another caller is TaskNotFound': async (server) => {
    const alice = await server.client('alice');
    const { id } = await alice.send('ask Which day?');
    await Receiver.during(async (receiver) => {
      const webhook = { id: 'hook', url: receiver.url() };
      await alice.webhooks.set(id, webhook);
      for (const name of ['bob', 'robot', 'reader']) {
        const client = await server.client(name);
        for (const ask of [
          () => client.get(id),
          () => client.subscribe(id),
          () => client.webhooks.get(id, 'hook'),
          () => client.webhooks.list(id),
        ]) {
          await refused(client, 'TaskNotFound', ask);
        }
      }
      for (const name of ['bob', 'robot']) {
        const client = await server.client(name);
        for (const ask of [
          () => client.cancel(id),
          () => client.send('Friday', { taskId: id }),
          () => client.stream('Friday', { taskId: id }),
          () => client.webhooks.set(id, { ...webhook, id: 'other' }),
          () => client.webhooks.delete(id, 'hook'),
        ]) {
          await refused(client, 'TaskNotFound', ask);
        }
      }
      assert.deepEqual((await alice.webhooks.list(id)).map((each) => each.id), ['hook']);
    });
    assert.equal((await alice.get(id)).state, 'input-required', 'it is as it was');
  },

  'a caller who may only read is told 403 when it sends': async (server) => {
    const reader = await server.client('reader');
    await shutOut(reader, 403, () => reader.send('hello'));
    await shutOut(reader, 403, () => reader.stream('hello'));
    await refused(reader, 'TaskNotFound', () => reader.get('no-such-task'));
  },

  'a token of the issuer on the card counts': async (server) => {
    const secret = await server.tokenOfIssuer();
    const client = await server.clientOf(new Caller({ scheme: 'oauth2', secret }));
    const { id, state } = await client.send('hello');
    assert.equal(state, 'completed');
    assert.equal((await client.get(id)).id, id);
    const alice = await server.client('alice');
    await refused(alice, 'TaskNotFound', () => alice.get(id));
  },

  'a token of the issuer that was tampered with does not count': async (server) => {
    const token = await server.tokenOfIssuer();
    const [head, claims, signature] = token.split('.');
    const secret = [head, claims, [...signature].reverse().join('')].join('.');
    await isShutOut(await server.clientOf(new Caller({ scheme: 'oauth2', secret })));
  },

  'a token of the issuer has the scopes that it names': async (server) => {
    const secret = await server.tokenOfIssuer({ scope: 'read' });
    const client = await server.clientOf(new Caller({ scheme: 'oauth2', secret }));
    await shutOut(client, 403, () => client.send('hello'));
    await refused(client, 'TaskNotFound', () => client.get('no-such-task'));
  },
};

/** For SDKs that repeat a refused request with what was asked for. */
export const retrying = {
  'a credential that was accepted is shown from then on': (server) =>
    forEachCaller(server, async (client) => {
      for (let times = 0; times < 3; times += 1) {
        await client.send('hello');
      }
      assert.equal(client.caller.retries, 1);
    }),
};

/** For 1.0, which has lists. */
export const listingByCallers = {
  'callers list their own tasks': async (server) => {
    const [alice, robot] = [await server.client('alice'), await server.client('robot')];
    const { id, contextId } = await alice.send('hello');
    assert.deepEqual((await alice.list({ contextId })).tasks.map((task) => task.id), [id]);
    assert.deepEqual((await robot.list({ contextId })).tasks, []);
  },
};

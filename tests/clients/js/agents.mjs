// Several agents on one server, each with a card of its own. Over HTTP their paths tell them apart; over gRPC there are none, so
// the card names a tenant, and the SDK sends it along by itself.

import assert from 'node:assert/strict';
import { connect } from './client_v1.mjs';
import { all, assembled, chunks } from './frames.mjs';
import { serving } from './own_server.mjs';
import { refused } from './refused.mjs';

const TWO_AGENTS = `
[[agent]]
id = "left"
kind = "demo"
default = true

[[agent]]
id = "right"
kind = "demo"
`;

/** Runs `body` with clients for both agents and for their server. */
const withTwoAgents = (binding, body) =>
  serving(TWO_AGENTS, async (url) => {
    const [left, right] = await Promise.all(['left', 'right'].map((id) => connect(`${url}/agents/${id}/`, binding)));
    return body(left, right, await connect(url, binding));
  });

export const agents = {
  'the card of an agent leads to that agent': ({ binding }) =>
    withTwoAgents(binding, async (left, right, root) => {
      const { id, state } = await right.send('hello');
      assert.equal(state, 'completed');
      assert.equal((await right.get(id)).id, id);
      assert.deepEqual((await right.list()).tasks.map((task) => task.id), [id]);
      assert.deepEqual((await left.list()).tasks, []);
      await refused(left, 'TaskNotFound', () => left.get(id));
      assert.equal((await root.get(id)).id, id);
    }),

  'streams and cancels reach the agent of the card': ({ binding }) =>
    withTwoAgents(binding, async (left, right) => {
      const frames = await all(right.stream('stream 3 0'));
      assert.deepEqual([...assembled(frames, right).values()], [chunks(3)]);
      const { id } = await right.send('slow 30', { immediately: true });
      await refused(left, 'TaskNotFound', () => left.cancel(id));
      await refused(left, 'TaskNotFound', () => left.subscribe(id));
      assert.equal((await right.cancel(id)).state, 'canceled');
    }),
};

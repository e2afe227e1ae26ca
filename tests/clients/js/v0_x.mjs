// What 0.2 and 0.3 say otherwise than 1.0, in the card and in calls.

import assert from 'node:assert/strict';
import { all, chunks, outline, textOf } from './frames.mjs';
import { spoken } from './turns.mjs';

export const ownOf0_x = {
  'the card says who the agent is and what it can do': async ({ card }) => {
    assert.ok(card.name && card.description && card.version, 'name, description and version');
    assert.equal(card.capabilities.streaming, true);
    assert.ok(!card.supportsAuthenticatedExtendedCard, 'an extended card is not offered');
    assert.ok(card.defaultInputModes.includes('text/plain') && card.defaultOutputModes.includes('text/plain'));
    assert.ok(card.skills.length > 0, 'at least one skill');
    assert.ok(card.skills.every(({ id, name, description, tags }) => id && name && description && tags.length > 0));
  },

  // ProtoJSON cannot tell 0 from unset, so over HTTP+JSON 0 asks for nothing special.
  'a historyLength of 0 means none, over HTTP+JSON unset': async (client) => {
    const { id } = await client.send('hello');
    const history = spoken(await client.get(id, { historyLength: 0 }));
    assert.deepEqual(history, client.binding === 'jsonrpc' ? [] : ['user: hello']);
  },

  'only the last status of a stream is final': async (client) => {
    const statuses = (await all(client.stream('stream 2 0'))).filter(({ kind }) => kind === 'status');
    assert.deepEqual(statuses.map(({ state, final }) => [state, final]), [['working', false], ['completed', true]]);
  },

  'a question is final: the turn is over': async (client) => {
    const last = (await all(client.stream('ask Which day?'))).at(-1);
    assert.deepEqual([last.state, last.final], ['input-required', true]);
  },

  'a contextId alone answers the waiting task': async (client) => {
    const asking = await client.send('ask Which day?');
    const answered = await client.send('Friday', { contextId: asking.contextId });
    assert.equal(answered.id, asking.id);
    assert.equal(answered.state, 'completed');
  },

  'subscribing to a finished task shows it once more and closes': async (client) => {
    const { id } = await client.send('stream 3 0');
    const frames = await all(client.subscribe(id));
    assert.deepEqual(outline(frames), ['task completed', 'completed']);
    assert.equal(frames[0].id, id);
    assert.equal(textOf(frames[0].artifacts[0].parts), chunks(3));
    assert.equal(frames[1].final, true);
  },
};

// The official JavaScript SDK 0.3.13 against Sabir: A2A 0.3 over JSON-RPC and over HTTP+JSON.
//
//     node v0_3.mjs --url http://127.0.0.1:41242 --binding jsonrpc|http_json
//
// What every version promises is in sending, streaming, turns and refusals; here is what is 0.3's own.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { A2AClient, DefaultAgentCardResolver, JsonRpcTransport, RestTransport } from '@a2a-js/sdk/client';
import { PROTOCOL_NAMES, connect } from './client_v0_3.mjs';
import { all, chunks, outline, textOf } from './frames.mjs';
import { refusals } from './refusals.mjs';
import { refused } from './refused.mjs';
import { Report, commandLine } from './report.mjs';
import { sending } from './sending.mjs';
import { streaming } from './streaming.mjs';
import { spoken, turns } from './turns.mjs';

const { url, binding } = commandLine();
const report = new Report(`js 0.3.13 ${binding}`);

const card = {
  'the card says who the agent is and what it can do': async ({ card }) => {
    assert.ok(card.name && card.description && card.version, 'name, description and version');
    assert.equal(card.capabilities.streaming, true);
    assert.ok(!card.capabilities.pushNotifications, 'push is not offered');
    assert.ok(!card.supportsAuthenticatedExtendedCard, 'an extended card is not offered');
    assert.ok(card.defaultInputModes.includes('text/plain') && card.defaultOutputModes.includes('text/plain'));
    assert.ok(card.skills.length > 0, 'at least one skill');
    assert.ok(card.skills.every(({ id, name, description, tags }) => id && name && description && tags.length > 0));
  },

  'the card lists the binding for 0.3': async ({ card, sdk }) => {
    assert.match(card.protocolVersion, /^0\.3\.\d+$/);
    assert.equal(card.preferredTransport, 'JSONRPC');
    const listed = [{ transport: card.preferredTransport, url: card.url }, ...card.additionalInterfaces];
    const ours = listed.filter(({ transport }) => transport === PROTOCOL_NAMES[binding]);
    assert.ok(ours.length > 0 && ours.every((each) => each.url.startsWith(url)), JSON.stringify(listed));
    assert.ok(sdk.transport instanceof { jsonrpc: JsonRpcTransport, http_json: RestTransport }[binding]);
  },

  'the same card carries the members of 1.0': async ({ card }) => {
    const versions = card.supportedInterfaces
      .filter(({ protocolBinding }) => protocolBinding === PROTOCOL_NAMES[binding])
      .map(({ protocolVersion }) => protocolVersion);
    assert.ok(versions.includes('1.0') && versions.includes('0.3'), versions.join());
  },

  'the card is also where 0.2 clients look for it': async ({ card }) => {
    const old = await new DefaultAgentCardResolver().resolve(url, '/.well-known/agent.json');
    assert.deepEqual(old, card);
  },

  'the extended card is AuthenticatedExtendedCardNotConfigured': (client) =>
    refused(client, 'ExtendedCardNotConfigured', () => client.extendedCard()),
};

const ownOf0_3 = {
  // ProtoJSON cannot tell 0 from unset, so over HTTP+JSON 0 asks for nothing special.
  'a historyLength of 0 means none, over HTTP+JSON unset': async (client) => {
    const { id } = await client.send('hello');
    const history = spoken(await client.get(id, { historyLength: 0 }));
    assert.deepEqual(history, binding === 'jsonrpc' ? [] : ['user: hello']);
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

// The SDK's first client class, which many programs still use. It speaks JSON-RPC only, and hands
// out envelopes: an error is returned, not thrown.
const olderClass = {
  'the older A2AClient sends and streams': async () => {
    const older = await A2AClient.fromCardUrl(new URL('/.well-known/agent-card.json', url).href);
    const { result } = await older.sendMessage({ message: userMessage('hello') });
    assert.equal(result.kind, 'task');
    assert.equal(result.status.state, 'completed');
    const kinds = (await all(older.sendMessageStream({ message: userMessage('stream 2 0') }))).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update']);
  },

  'the older A2AClient returns an error as an envelope': async () => {
    const older = await A2AClient.fromCardUrl(new URL('/.well-known/agent-card.json', url).href);
    const { error } = await older.getTask({ id: 'no-such-task' });
    assert.equal(error?.code, -32001);
  },
};

function userMessage(text) {
  return { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] };
}

const client = await report.run('a client is built from the card', () => connect(url, binding));
if (client) {
  for (const cases of [card, sending, streaming, turns, ownOf0_3, refusals]) {
    await report.runAll(cases, client);
  }
  if (binding === 'jsonrpc') {
    await report.runAll(olderClass, client);
  }
}
report.finish();

// The official JavaScript SDK 1.3.0 against Sabir: A2A 1.0 over JSON-RPC, over HTTP+JSON and over gRPC.
//
//     node v1.mjs --url http://127.0.0.1:41242 --binding jsonrpc|http_json|grpc --secured FILE
//
// What every version promises is in sending, streaming, turns, webhooks and refusals; here is what is 1.0's own.

import assert from 'node:assert/strict';
import { agents } from './agents.mjs';
import { PROTOCOL_NAMES, connect } from './client_v1.mjs';
import { compatByGrpc } from './compat_grpc.mjs';
import { credentials, listingByCallers, retrying } from './credentials.mjs';
import { listing } from './listing.mjs';
import { overGrpc } from './not_over_grpc.mjs';
import { refusals } from './refusals.mjs';
import { refused } from './refused.mjs';
import { Report, commandLine } from './report.mjs';
import { SecuredServer } from './secured.mjs';
import { sending } from './sending.mjs';
import { signing } from './signing.mjs';
import { streaming } from './streaming.mjs';
import { spoken, turns } from './turns.mjs';
import { webhooks } from './webhooks.mjs';

const { url, binding, secured } = commandLine();
const report = new Report(`js 1.3.0 ${binding}`);

const card = {
  'the card says who the agent is and what it can do': async ({ card }) => {
    assert.ok(card.name && card.description && card.version, 'name, description and version');
    assert.equal(card.capabilities.streaming, true);
    assert.ok(!card.capabilities.extendedAgentCard, 'an extended card is not offered');
    assert.ok(card.defaultInputModes.includes('text/plain') && card.defaultOutputModes.includes('text/plain'));
    assert.ok(card.skills.length > 0, 'at least one skill');
    assert.ok(card.skills.every(({ id, name, description, tags }) => id && name && description && tags.length > 0));
  },

  'the card lists the binding for 1.0 before older versions': async ({ card, sdk }) => {
    const ours = card.supportedInterfaces.filter((each) => each.protocolBinding === PROTOCOL_NAMES[binding]);
    assert.equal(ours[0]?.protocolVersion, '1.0');
    assert.ok(ours.some(({ protocolVersion }) => protocolVersion === '0.3'), '0.3 is listed too');
    const address = binding === 'grpc' ? new URL(url).host : url;
    assert.ok(ours.every((each) => each.url.startsWith(address)), `addresses of this server: ${JSON.stringify(ours)}`);
    assert.equal(sdk.transport.protocolName, PROTOCOL_NAMES[binding]);
    assert.equal(sdk.protocolVersion, '1.0');
  },

  'the extended card is UnsupportedOperation': (client) =>
    refused(client, 'UnsupportedOperation', () => client.extendedCard()),
};

const ownOf1_0 = {
  'data that is no object survives': async (client) => {
    const parts = [{ data: [1, 'two', { three: [3.5] }] }, { data: 'text' }, { data: 42 }, { data: false }];
    const task = await client.send(parts);
    assert.deepEqual(task.artifacts[0].parts, parts);
  },

  'a historyLength of 0 leaves the history out': async (client) => {
    const { id } = await client.send('hello');
    assert.deepEqual(spoken(await client.get(id, { historyLength: 0 })), []);
    assert.deepEqual(spoken(await client.send('hello', { historyLength: 0 })), []);
  },

  'a contextId alone starts a new task beside the waiting one': async (client) => {
    const asking = await client.send('ask Which day?');
    const other = await client.send('Friday', { contextId: asking.contextId });
    assert.notEqual(other.id, asking.id);
    assert.equal(other.state, 'completed');
    assert.equal((await client.get(asking.id)).state, 'input-required');
  },

  'subscribing to a finished task is UnsupportedOperation': async (client) => {
    const { id } = await client.send('hello');
    await refused(client, 'UnsupportedOperation', () => client.subscribe(id));
  },
};

const client = await report.run('a client is built from the card', () => connect(url, binding));
if (client) {
  const everywhere = { card, sending, streaming, turns, ownOf1_0, listing, webhooks, refusals, agents, signing };
  const groups = binding === 'grpc' ? { ...overGrpc(everywhere), compatByGrpc } : everywhere;
  for (const cases of Object.values(groups)) {
    await report.runAll(cases, client);
  }
}
const server = await SecuredServer.read(secured, binding, connect);
const securedGroups = { credentials, listingByCallers, retrying };
for (const cases of Object.values(binding === 'grpc' ? overGrpc(securedGroups) : securedGroups)) {
  await report.runAll(cases, server);
}
report.finish();

// The official JavaScript SDK 0.3.13 against Sabir: A2A 0.3 over JSON-RPC and over HTTP+JSON.
//
//     node v0_3.mjs --url http://127.0.0.1:41242 --binding jsonrpc|http_json --secured FILE
//
// What every version promises is in sending, streaming, turns, webhooks and refusals, and what 0.2 and 0.3 say
// otherwise than 1.0 in v0_x; here is what is 0.3's own.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { A2AClient, DefaultAgentCardResolver, JsonRpcTransport, RestTransport } from '@a2a-js/sdk/client';
import { PROTOCOL_NAMES, connect } from './client_v0_3.mjs';
import { credentials, retrying } from './credentials.mjs';
import { all } from './frames.mjs';
import { refusals } from './refusals.mjs';
import { refused } from './refused.mjs';
import { Report, commandLine } from './report.mjs';
import { SecuredServer } from './secured.mjs';
import { sending } from './sending.mjs';
import { streaming } from './streaming.mjs';
import { turns } from './turns.mjs';
import { ownOf0_x } from './v0_x.mjs';
import { webhooks } from './webhooks.mjs';

const { url, binding, secured } = commandLine();
const report = new Report(`js 0.3.13 ${binding}`);

const card = {
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
  for (const cases of [card, sending, streaming, turns, ownOf0_x, webhooks, refusals]) {
    await report.runAll(cases, client);
  }
  if (binding === 'jsonrpc') {
    await report.runAll(olderClass, client);
  }
}
const server = await SecuredServer.read(secured, binding, connect);
for (const cases of [credentials, retrying]) {
  await report.runAll(cases, server);
}
report.finish();

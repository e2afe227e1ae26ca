// The official JavaScript SDK 0.2.5 against Sabir: A2A 0.2, which is JSON-RPC only.
//
//     node v0_2.mjs --url http://127.0.0.1:41242 --binding jsonrpc --secured FILE
//
// What every version promises is in sending, streaming, turns, webhooks and refusals, and what 0.2 and 0.3 say
// otherwise than 1.0 in v0_x; here is what is 0.2's own.

import assert from 'node:assert/strict';
import { complaints, connect } from './client_v0_2.mjs';
import { credentials } from './credentials.mjs';
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
const report = new Report(`js 0.2.5 ${binding}`);

const card = {
  'the card is the same at the old place and at the new one': async ({ card, sdk }) => {
    assert.equal(sdk.agentCardPath, '.well-known/agent.json', 'where the SDK looks');
    assert.deepEqual(await sdk.getAgentCard(url, '.well-known/agent-card.json'), card);
  },

  'the card gives the address of JSON-RPC': async ({ card }) => {
    assert.equal(card.url, `${url}/a2a/jsonrpc`);
    assert.equal(card.preferredTransport, 'JSONRPC');
    assert.ok(card.additionalInterfaces.some((each) => each.transport === 'JSONRPC' && each.url === card.url));
    assert.match(card.protocolVersion, /^0\.\d+\.\d+$/);
  },

  'the extended card is not found beside the address of the card': ({ card, sdk }) =>
    noExtendedCard(sdk, card.url.slice(0, card.url.lastIndexOf('/'))),

  'the extended card is not found below the server': ({ sdk }) => noExtendedCard(sdk, url),
};

const ownOf0_2 = {
  'accepted output modes may be types, words or none': async (client) => {
    const several = [['text/plain'], ['application/json', 'text/plain'], ['text'], ['text', 'file', 'data'], []];
    for (const acceptedOutputModes of several) {
      const task = await client.sendConfigured('hello', { acceptedOutputModes, blocking: true });
      const seen = [task.state, task.artifacts[0]?.parts];
      assert.deepEqual(seen, ['completed', [{ text: 'echo: hello' }]], `with ${acceptedOutputModes}`);
    }
  },

  'a send that says nothing of blocking waits': async (client) => {
    for (const configuration of [{ acceptedOutputModes: ['text/plain'] }, undefined]) {
      const task = await client.sendConfigured('slow 0.3 hi', configuration);
      assert.equal(task.state, 'completed', `with ${JSON.stringify(configuration)}`);
    }
  },

  // Of all mounts `/a2a/jsonrpc` is the one where the answer has to be the one of the specification.
  'a finished task cannot be canceled at the address of the card': async (client) => {
    assert.equal(new URL(client.sdk.serviceEndpointUrl).pathname, '/a2a/jsonrpc');
    const task = await client.send('hello');
    await refused(client, 'TaskNotCancelable', () => client.cancel(task.id));
    assert.deepEqual(await client.get(task.id), task, 'left as it was');
  },
};

// This one comes last, when everything has been answered.
const answers = {
  'every answer carried the id of its request': async () => {
    assert.deepEqual(complaints.filter((each) => each.includes('mismatch')), []);
  },
};

/** Plain HTTP, so the refusal is a status and no envelope; the SDK tells it in the text of its error. */
async function noExtendedCard(sdk, base) {
  const message = /^Failed to fetch Agent Card from .*: 404 Not Found$/;
  await assert.rejects(sdk.getAgentCard(base, 'agent/authenticatedExtendedCard'), { message });
}

const client = await report.run('a client is built from the card', () => connect(url, binding));
if (client) {
  for (const cases of [card, sending, streaming, turns, ownOf0_x, webhooks, refusals, ownOf0_2, answers]) {
    await report.runAll(cases, client);
  }
}
await report.runAll(credentials, await SecuredServer.read(secured, binding, connect));
report.finish();

// A server that asks for credentials.

import assert from 'node:assert/strict';

import { CREDENTIALS, TOKEN, failure, words } from './stage.mjs';

export async function withoutATokenNothingIsAnswered(stage) {
  const server = await stage.ownServer(CREDENTIALS);
  for (const token of [undefined, 'sabir_wrong-0123456789abcdef012345678']) {
    const error = await failure(stage.client({ server, token }));
    assert.match(`${error.code} ${error.data?.status} ${error.message}`, /401|unauthorized|authorization/i);
  }
}

export async function withATokenTheToolsWork(stage) {
  const client = await stage.client({ server: await stage.ownServer(CREDENTIALS), token: TOKEN });
  assert((await client.tools()).some((tool) => tool.name === 'ask_demo'));
  assert.equal(words(await client.call('ask_agent', { message: 'hello' })), 'echo: hello');
}

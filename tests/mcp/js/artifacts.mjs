// What tasks make: content of results, and resources.

import assert from 'node:assert/strict';

import { isFromServer } from './sdks.mjs';
import { dataOf, failure, words } from './stage.mjs';

const HELLO = Buffer.from('Hello file').toString('base64');

/** The content of a result behind its words, and the resource of its one artifact. */
async function made(client, message) {
  const result = await client.call('ask_agent', { message });
  const [{ uri }] = dataOf(result, 'completed').artifacts;
  return { result, uri, block: result.content[1], contents: (await client.read(uri))[0] };
}

export async function aFileComesAlongAndIsReadAsAResource(stage) {
  const { uri, block, contents } = await made(await stage.client(), 'file');
  assert.equal(block.type, 'resource');
  for (const resource of [block.resource, contents]) {
    assert.deepEqual([resource.uri, resource.mimeType, resource.blob], [uri, 'text/plain', HELLO]);
  }
}

export async function aUrlIsALink(stage) {
  const { block, contents } = await made(await stage.client(), 'url');
  assert.deepEqual([block.type, block.uri, block.name], ['resource_link', 'https://example.com/output.txt', 'output.txt']);
  assert.equal(contents.text, 'https://example.com/output.txt');
}

export async function dataIsJson(stage) {
  const { block, contents } = await made(await stage.client(), 'data');
  for (const { text } of [block, contents]) assert.deepEqual(JSON.parse(text), { key: 'value', count: 42 });
}

export async function wordsAreAResourceToo(stage) {
  const { result, contents } = await made(await stage.client(), 'héllo wörld');
  assert.deepEqual([words(result), contents.text], ['echo: héllo wörld', 'echo: héllo wörld']);
}

export async function anUnknownResourceIsAnErrorOfTheProtocol(stage) {
  const client = await stage.client();
  for (const uri of ['sabir://tasks/none/artifacts/none', 'file:///etc/passwd']) {
    const error = await failure(client.read(uri));
    assert(isFromServer(error) && error.code === -32602, `${uri}: ${error.message}`);
  }
}

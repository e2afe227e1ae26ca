// What a host finds: the tools, their schemas, and what is refused.

import assert from 'node:assert/strict';

import Ajv from 'ajv/dist/2020.js';

import { isFromServer } from './sdks.mjs';
import { failure, words } from './stage.mjs';

const TOOLS = ['list_agents', 'ask_agent', 'wait_task', 'answer_task', 'cancel_task', 'get_task', 'ask_demo', 'ask_asks'];
const CODING = ['run', 'poll', 'result', 'cancel', 'info'].map((name) => `coding_agent_${name}`);

export async function everyToolIsListedWithAValidSchema(stage) {
  const tools = await (await stage.client()).tools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), [...TOOLS, ...CODING].sort());
  const ajv = new Ajv.default();
  const validators = {};
  for (const tool of tools) {
    // Ajv is strict: it refuses what no vocabulary knows.
    validators[tool.name] = ajv.compile(tool.inputSchema);
    assert(tool.description && tool.title && tool.annotations, tool.name);
  }
  assert(validators.ask_agent({ message: 'hello', wait_seconds: 0 }));
  assert(!validators.ask_agent({ mesage: 'hello' }) && !validators.ask_agent({ message: 'hello', wait_seconds: -1 }));
}

export async function theServerSaysWhoItIs(stage) {
  const client = await stage.client();
  assert.equal(client.server().name, 'sabir');
  assert.match(client.instructions(), /list_agents/);
}

export async function agentsAreListed(stage) {
  const { agents } = (await (await stage.client()).call('list_agents')).structuredContent;
  assert.deepEqual(Object.fromEntries(agents.map((agent) => [agent.id, agent.default])), { asks: false, demo: true });
}

export async function aWrongArgumentIsNamedForTheModel(stage) {
  const client = await stage.client();
  for (const [tool, args, expected] of [
    ['ask_agent', {}, 'message'],
    ['ask_agent', { mesage: 'hello' }, 'mesage'],
    ['ask_agent', { message: 'hello', wait_seconds: 'soon' }, 'wait_seconds'],
    ['ask_agent', { message: 'hello', agent: 'nobody' }, 'nobody'],
    ['get_task', { task: 'no-such-task' }, 'no-such-task'],
    ['coding_agent_poll', { jobId: 'no-such-job' }, 'no-such-job'],
  ]) {
    const result = await client.call(tool, args);
    assert(result.isError && words(result).includes(expected), `${tool} ${JSON.stringify(args)}: ${words(result)}`);
  }
}

export async function anUnknownToolIsAnErrorOfTheProtocol(stage) {
  const client = await stage.client();
  const error = await failure(client.call('no_such_tool', {}));
  assert(isFromServer(error) && error.code === -32602 && error.message.includes('no_such_tool'), error.message);
}

export async function resourcesAreDescribedByATemplate(stage) {
  const client = await stage.client();
  assert.deepEqual(await client.resources(), []);
  const templates = await client.templates();
  assert.deepEqual(templates.map((template) => template.uriTemplate), ['sabir://tasks/{task}/artifacts/{artifact}']);
}

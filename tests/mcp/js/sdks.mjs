// The SDKs and the eras that they speak, behind one face: what a case needs of a client.

import { Client as NewClient, ProtocolError, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';

const WHO = { name: 'sabir-suite', version: '1.0.0' };
const LEGACY = '2025-11-25';

/** What each client is called in the names of cases, and how it connects. */
export const SDKS = {
  'client 2.4.0, modern': { version: '2026-07-28', connect: (options) => connectNew('auto', options) },
  'client 2.4.0, legacy': { version: LEGACY, connect: (options) => connectNew('legacy', options) },
  'sdk 1.32.2': { version: LEGACY, connect: connectOld },
};

/** An error that the server has answered with, not one of the SDK's own. */
export function isFromServer(error) {
  return error instanceof ProtocolError || error instanceof McpError;
}

function transportOptions(token) {
  return token ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } } : {};
}

async function connectNew(mode, { url, token, elicit }) {
  const capabilities = elicit ? { elicitation: { form: {} } } : {};
  const client = new NewClient(WHO, { capabilities, versionNegotiation: { mode } });
  if (elicit) client.setRequestHandler('elicitation/create', (request) => elicit(request.params));
  const transport = new NewTransport(new URL(url), transportOptions(token));
  await client.connect(transport);
  return {
    version: client.getNegotiatedProtocolVersion(),
    call: (name, args, options) => client.callTool({ name, arguments: args ?? {} }, options),
    ...face(client),
  };
}

async function connectOld({ url, token, elicit }) {
  const client = new OldClient(WHO, { capabilities: elicit ? { elicitation: { form: {} } } : {} });
  if (elicit) client.setRequestHandler(ElicitRequestSchema, (request) => elicit(request.params));
  const transport = new OldTransport(new URL(url), transportOptions(token));
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    call: (name, args, options) => client.callTool({ name, arguments: args ?? {} }, undefined, options),
    ...face(client),
  };
}

/** What both SDKs call alike. */
function face(client) {
  return {
    tools: async () => (await client.listTools()).tools,
    read: async (uri) => (await client.readResource({ uri })).contents,
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    server: () => client.getServerVersion(),
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  };
}

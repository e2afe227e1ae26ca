// A server of A2A 0.3, built on the official JavaScript SDK 0.3.14; `serving.mjs` says how it is started.

import { randomUUID } from 'node:crypto';

import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import express from 'express';

import { BINDINGS, CARD, main } from './serving.mjs';
import { WordsAgent } from './words.mjs';

const HANDLERS = { jsonrpc: jsonRpcHandler, http_json: restHandler };

main((url, bindings) => {
  const interfaces = bindings.map((binding) => ({
    url: url + BINDINGS[binding].path,
    transport: BINDINGS[binding].name,
  }));
  const card = {
    ...CARD,
    protocolVersion: '0.3.0',
    url: interfaces[0].url,
    preferredTransport: interfaces[0].transport,
    additionalInterfaces: interfaces,
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new WordsAgent(spelling));
  const application = express();
  application.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  for (const binding of bindings) {
    const handler = HANDLERS[binding]({ requestHandler, userBuilder: UserBuilder.noAuthentication });
    application.use(BINDINGS[binding].path, handler);
  }
  return application;
});

// States that end a turn, and with it a stream.
const FINAL = ['completed', 'failed', 'rejected', 'canceled', 'input-required', 'auth-required'];

const spelling = {
  text: (text) => ({ kind: 'text', text }),
  file: (text, name, mimeType) => ({
    kind: 'file',
    file: { bytes: Buffer.from(text).toString('base64'), name, mimeType },
  }),
  url: (uri, name, mimeType) => ({ kind: 'file', file: { uri, name, mimeType } }),
  data: (data) => ({ kind: 'data', data }),

  isText: (part) => part.kind === 'text',

  textOf: (message) =>
    message.parts
      .filter(spelling.isText)
      .map((part) => part.text)
      .join(' ')
      .trim(),

  message: ({ contextId }, text) => ({ ...agentText(text), contextId }),

  opening: ({ taskId: id, contextId, task, userMessage }) => {
    const status = { state: 'submitted', timestamp: new Date().toISOString() };
    return task ? [] : [{ kind: 'task', id, contextId, status, history: [userMessage] }];
  },

  status: ({ taskId, contextId }, state, text) => ({
    kind: 'status-update',
    taskId,
    contextId,
    status: {
      state,
      timestamp: new Date().toISOString(),
      ...(text && { message: { ...agentText(text), taskId, contextId } }),
    },
    final: FINAL.includes(state),
  }),

  artifact: ({ taskId, contextId }, { id, parts, append, lastChunk }) => ({
    kind: 'artifact-update',
    taskId,
    contextId,
    artifact: { artifactId: id, name: 'result', parts },
    append,
    lastChunk,
  }),
};

function agentText(text) {
  return { kind: 'message', role: 'agent', messageId: randomUUID(), parts: [spelling.text(text)] };
}

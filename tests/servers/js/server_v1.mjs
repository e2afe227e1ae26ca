// A server of A2A 1.0, built on the official JavaScript SDK 1.3.0; `serving.mjs` says how it is started.

import { randomUUID } from 'node:crypto';

import { AgentCard, Message, Part, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import express from 'express';

import { BINDINGS, CARD, main } from './serving.mjs';
import { WordsAgent } from './words.mjs';

const HANDLERS = { jsonrpc: jsonRpcHandler, http_json: restHandler };

main((url, bindings) => {
  const card = AgentCard.fromJSON({
    ...CARD,
    supportedInterfaces: bindings.map((binding) => ({
      url: url + BINDINGS[binding].path,
      protocolBinding: BINDINGS[binding].name,
      protocolVersion: '1.0',
    })),
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new WordsAgent(spelling));
  const application = express();
  application.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  for (const binding of bindings) {
    const handler = HANDLERS[binding]({ requestHandler, userBuilder: UserBuilder.noAuthentication });
    application.use(BINDINGS[binding].path, handler);
  }
  return application;
});

const spelling = {
  text: (text) => Part.fromJSON({ text }),
  file: (text, filename, mediaType) =>
    Part.fromJSON({ raw: Buffer.from(text).toString('base64'), filename, mediaType }),
  url: (url, filename, mediaType) => Part.fromJSON({ url, filename, mediaType }),
  data: (data) => Part.fromJSON({ data }),

  isText: (part) => part.content?.$case === 'text',

  textOf: (message) =>
    message.parts
      .filter(spelling.isText)
      .map((part) => part.content.value)
      .join(' ')
      .trim(),

  message: ({ contextId }, text) =>
    AgentEvent.message(Message.fromJSON({ messageId: randomUUID(), contextId, ...agentText(text) })),

  // The SDK wants a task at the beginning of every turn.
  opening: ({ taskId: id, contextId, task, userMessage }) => {
    const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() };
    const created = { ...Task.fromJSON({ id, contextId, status }), history: [userMessage] };
    return [AgentEvent.task(task ?? created)];
  },

  status: ({ taskId, contextId }, state, text) => {
    const message = text && { messageId: randomUUID(), taskId, contextId, ...agentText(text) };
    const status = {
      state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}`,
      timestamp: new Date().toISOString(),
      message: message || undefined,
    };
    return AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status }));
  },

  artifact: ({ taskId, contextId }, { id, parts, append, lastChunk }) => {
    const artifact = { artifactId: id, name: 'result' };
    const event = TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, append, lastChunk });
    event.artifact.parts = parts;
    return AgentEvent.artifactUpdate(event);
  },
};

function agentText(text) {
  return { role: 'ROLE_AGENT', parts: [{ text }] };
}

// The objects of A2A 0.x, where each says its `kind`, read into the plain nouns that the cases speak
// and written from them; client_v1.mjs describes those. The SDKs 0.2.5 and 0.3.13 take and give them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

const STATES = new Set([
  'submitted', 'working', 'input-required', 'completed', 'canceled', 'failed', 'rejected', 'auth-required',
]);

export function message(content, { taskId, contextId, messageId, metadata }) {
  const parts = typeof content === 'string' ? [{ text: content }] : content;
  return {
    kind: 'message',
    messageId: messageId ?? randomUUID(),
    role: 'user',
    parts: parts.map(sdkPart),
    ...(taskId && { taskId }),
    ...(contextId && { contextId }),
    ...(metadata && { metadata }),
  };
}

function sdkPart({ text, bytes, url, data, name, type, metadata }) {
  const file = { ...(name && { name }), ...(type && { mimeType: type }) };
  const part =
    text !== undefined ? { kind: 'text', text }
    : bytes !== undefined ? { kind: 'file', file: { bytes, ...file } }
    : url !== undefined ? { kind: 'file', file: { uri: url, ...file } }
    : { kind: 'data', data };
  return metadata ? { ...part, metadata } : part;
}

function plainPart({ kind, text, file, data, metadata }) {
  const about = file && {
    ...(file.name && { name: file.name }),
    ...(file.mimeType && { type: file.mimeType }),
  };
  const plain = {
    text: () => ({ text }),
    file: () => (file.uri === undefined ? { bytes: file.bytes, ...about } : { url: file.uri, ...about }),
    data: () => ({ data }),
  }[kind];
  assert.ok(plain, `a part of kind ${kind}`);
  return metadata ? { ...plain(), metadata } : plain();
}

/** A delivery is the task, as JSON-RPC has it. The SDKs have no parser; this is as strict as for their answers. */
export function readDelivery(body) {
  return plainTask(JSON.parse(body));
}

/** A webhook is `{taskId, id, url}`, with `token` only if the server told it. */
export function plainWebhook({ taskId, pushNotificationConfig: { id, url, token } }) {
  return { taskId, id, url, ...(token && { token }) };
}

export function plainReply(reply) {
  return reply.kind === 'message' ? plainMessage(reply) : plainTask(reply);
}

export function plainTask(task) {
  assert.equal(task.kind, 'task');
  return {
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    ...plainStatus(task.status),
    artifacts: (task.artifacts ?? []).map(plainArtifact),
    history: (task.history ?? []).map(plainMessage),
  };
}

function plainStatus(status) {
  assert.ok(STATES.has(status.state), `a state that 0.x does not know: ${status.state}`);
  return {
    state: status.state,
    message: status.message && plainMessage(status.message),
    timestamp: status.timestamp,
  };
}

function plainMessage(message) {
  assert.equal(message.kind, 'message');
  assert.ok(['user', 'agent'].includes(message.role), `a role that 0.x does not know: ${message.role}`);
  return {
    kind: 'message',
    id: message.messageId,
    role: message.role,
    taskId: message.taskId,
    contextId: message.contextId,
    parts: message.parts.map(plainPart),
    metadata: message.metadata,
  };
}

function plainArtifact(artifact) {
  return { id: artifact.artifactId, name: artifact.name, parts: artifact.parts.map(plainPart) };
}

export function plainFrame(event) {
  const { taskId, contextId } = event;
  switch (event.kind) {
    case 'task':
      return plainTask(event);
    case 'message':
      return plainMessage(event);
    case 'status-update':
      return { kind: 'status', taskId, contextId, ...plainStatus(event.status), final: event.final };
    case 'artifact-update':
      return {
        kind: 'artifact',
        taskId,
        contextId,
        artifact: plainArtifact(event.artifact),
        append: event.append ?? false,
        last: event.lastChunk ?? false,
      };
    default:
      throw new Error(`a stream frame of kind ${event.kind}`);
  }
}

/** What a card wants to see, by the name of the scheme: kind and detail. */
export function plainSecurity({ securitySchemes }) {
  const plain = {
    http: ({ scheme }) => ['http', scheme],
    apiKey: ({ name }) => ['apiKey', name],
    oauth2: ({ flows }) => ['oauth2', Object.values(flows)[0]?.tokenUrl],
  };
  return Object.fromEntries(Object.entries(securitySchemes).map(([name, scheme]) => [name, plain[scheme.type](scheme)]));
}

// SDK 0.3.13 (A2A 0.3) behind the plain nouns that the cases speak; client_v1.mjs describes them.
//
// Over JSON-RPC this SDK hands out what the server sent, unread. Over HTTP+JSON it translates from
// ProtoJSON and drops file names, part metadata, `append` and the data of errors on the way:
// `visible`, `showsAppend` and `showsErrorData` tell the cases what cannot be seen from here.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  AuthenticatedExtendedCardNotConfiguredError,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  PushNotificationNotSupportedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/client';

export const PROTOCOL_NAMES = { jsonrpc: 'JSONRPC', http_json: 'HTTP+JSON' };

const STATES = new Set([
  'submitted', 'working', 'input-required', 'completed', 'canceled', 'failed', 'rejected', 'auth-required',
]);

const REFUSALS = {
  TaskNotFound: { type: TaskNotFoundError, code: -32001 },
  TaskNotCancelable: { type: TaskNotCancelableError, code: -32002 },
  PushNotificationNotSupported: { type: PushNotificationNotSupportedError, code: -32003 },
  UnsupportedOperation: { type: UnsupportedOperationError, code: -32004 },
  ExtendedCardNotConfigured: { type: AuthenticatedExtendedCardNotConfiguredError, code: -32007 },
  // The SDK has no class of its own for this one.
  InvalidParams: { type: Error, code: -32602 },
};

/** Resolves the card as a user of the SDK does, and builds the client that prefers the binding. */
export async function connect(url, binding) {
  const card = await new DefaultAgentCardResolver().resolve(url);
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    preferredTransports: [PROTOCOL_NAMES[binding]],
  });
  const sdk = await new ClientFactory(options).createFromAgentCard(card);
  return new PlainClient(sdk, card, binding);
}

class PlainClient {
  constructor(sdk, card, binding) {
    this.sdk = sdk;
    this.card = card;
    this.binding = binding;
    this.showsAppend = binding === 'jsonrpc';
    this.showsErrorData = binding === 'jsonrpc';
    this.visible = binding === 'jsonrpc' ? (part) => part : withoutNameAndMetadata;
  }

  /** Sends and waits, or with `immediately` does not. Answers a plain task or message. */
  async send(content, { taskId, contextId, messageId, immediately, historyLength, metadata } = {}) {
    // Over HTTP+JSON `blocking: false` is ProtoJSON's default and is not written: the server gets a
    // configuration without it, and that has to mean what the caller said.
    const params = {
      message: message(content, { taskId, contextId, messageId, metadata }),
      configuration: { blocking: !immediately, historyLength },
    };
    return plainReply(await this.sdk.sendMessage(params));
  }

  async *stream(content, { taskId, contextId, signal } = {}) {
    const params = { message: message(content, { taskId, contextId }) };
    for await (const event of this.sdk.sendMessageStream(params, { signal })) {
      yield plainFrame(event);
    }
  }

  async *subscribe(id, { signal } = {}) {
    for await (const event of this.sdk.resubscribeTask({ id }, { signal })) {
      yield plainFrame(event);
    }
  }

  async get(id, { historyLength } = {}) {
    return plainTask(await this.sdk.getTask({ id, historyLength }));
  }

  async cancel(id) {
    return plainTask(await this.sdk.cancelTask({ id }));
  }

  // The SDK's client asks the card first and never sends these four while it says no push, so the
  // transport is asked directly: the server has to say it too.
  push(taskId) {
    const transport = this.sdk.transport;
    const named = { id: taskId, pushNotificationConfigId: 'hook' };
    const config = { taskId, pushNotificationConfig: { id: 'hook', url: 'https://example.com/hook' } };
    return {
      set: () => transport.setTaskPushNotificationConfig(config),
      get: () => transport.getTaskPushNotificationConfig(named),
      list: () => transport.listTaskPushNotificationConfig({ id: taskId }),
      delete: () => transport.deleteTaskPushNotificationConfig(named),
    };
  }

  // By the transport for the same reason: the client returns the public card unasked.
  extendedCard() {
    return this.sdk.transport.getExtendedAgentCard();
  }

  /** Insists that `error` is the SDK's own error of that name, with the code it exposes. */
  assertRefusal(error, name) {
    const { type, code } = REFUSALS[name];
    const said = unwrapped(error);
    assert.ok(said instanceof type, `expected ${name}, got ${say(error)}`);
    if (this.binding === 'jsonrpc') {
      assert.equal(said.errorResponse?.error?.code, code, `the code of ${say(error)}`);
    } else if (type === Error) {
      // Over HTTP+JSON an error without a class shows its code in the text only.
      assert.match(said.message, new RegExp(`\\(Code: ${code}\\)`), `the code of ${say(error)}`);
    }
  }

  /** The task id that an error names; only where `showsErrorData`. */
  taskNamedBy(error) {
    return unwrapped(error).errorResponse?.error?.data?.taskId;
  }
}

/** An error inside a stream comes wrapped: the SDK's text around, its typed error as the cause. */
function unwrapped(error) {
  return error?.cause?.errorResponse ? error.cause : error;
}

function withoutNameAndMetadata({ name: _name, metadata: _metadata, ...part }) {
  return part;
}

function message(content, { taskId, contextId, messageId, metadata }) {
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

function plainReply(reply) {
  return reply.kind === 'message' ? plainMessage(reply) : plainTask(reply);
}

function plainTask(task) {
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
  assert.ok(STATES.has(status.state), `a state that 0.3 does not know: ${status.state}`);
  return {
    state: status.state,
    message: status.message && plainMessage(status.message),
    timestamp: status.timestamp,
  };
}

function plainMessage(message) {
  assert.equal(message.kind, 'message');
  assert.ok(['user', 'agent'].includes(message.role), `a role that 0.3 does not know: ${message.role}`);
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

function plainFrame(event) {
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

function say(error) {
  const said = unwrapped(error);
  const code = said?.errorResponse?.error?.code ?? 'no code';
  return `${said?.constructor?.name ?? typeof said} (${code}): ${error?.message}`;
}

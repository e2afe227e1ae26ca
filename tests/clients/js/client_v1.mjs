// SDK 1.3.0 (A2A 1.0) behind the plain nouns that the cases speak.
//
// A case says `client.send('hello')` and reads `task.state === 'completed'`; here that becomes the
// SDK's requests with their `$case` unions and numeric enums, and back. Nothing is repaired on the
// way: an enum that the SDK does not recognise throws.
//
// Plain nouns: a part is `{text}`, `{bytes, name, type}` (base64), `{url, name, type}` or `{data}`,
// each with `metadata` if there is any. A stream frame has a `kind`: task, message, status, artifact.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { credentials } from '@grpc/grpc-js';
import { Role, StreamResponse, TaskState, roleToJSON, taskStateFromJSON, taskStateToJSON } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';

export const PROTOCOL_NAMES = { jsonrpc: 'JSONRPC', http_json: 'HTTP+JSON', grpc: 'GRPC' };

const REFUSALS = {
  TaskNotFound: { type: TaskNotFoundError, code: -32001, status: 404, grpc: 5 },
  TaskNotCancelable: { type: TaskNotCancelableError, code: -32002, status: 400, grpc: 9 },
  UnsupportedOperation: { type: UnsupportedOperationError, code: -32004, status: 400, grpc: 9 },
  InvalidParams: { type: RequestMalformedError, code: -32602, status: 400, grpc: 3 },
};

/** The HTTP status that a code of gRPC stands for. */
const HTTP_STATUS = { 7: 403, 16: 401 };

/** Resolves the card as a user of the SDK does, and builds the client that prefers the binding. A caller authenticates. */
export async function connect(url, binding, caller) {
  const fetchImpl = caller && createAuthenticatingFetchWithRetry(caller.fetch, caller);
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  const card = await cardResolver.resolve(url);
  if (binding === 'grpc') {
    return connectByGrpc(url, card, caller);
  }
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    preferredTransports: [PROTOCOL_NAMES[binding]],
    ...(caller && {
      transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
      cardResolver,
    }),
  });
  const sdk = await new ClientFactory(options).createFromAgentCard(card);
  return new PlainClient(sdk, card, binding);
}

/** A client for a card that is there already; with `legacyCompat` also for one that lists nothing newer than 0.3. */
export async function connectByGrpc(url, card, caller, legacyCompat) {
  // Where the environment names roots for gRPC, a channel trusts those and not what Node trusts; so it is told.
  const grpcChannelCredentials = url.startsWith('https:')
    ? credentials.createSsl(await readFile(process.env.NODE_EXTRA_CA_CERTS))
    : credentials.createInsecure();
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    preferredTransports: [PROTOCOL_NAMES.grpc],
    transports: [new GrpcTransportFactory({ grpcChannelCredentials, legacyCompat })],
    ...(caller && { clientConfig: { interceptors: [caller.knowing(securityOf(card))] } }),
  });
  return new PlainClient(await new ClientFactory(options).createFromAgentCard(card), card, 'grpc');
}

class PlainClient {
  constructor(sdk, card, binding) {
    this.sdk = sdk;
    this.card = card;
    this.binding = binding;
    // What the SDK hides from its user: nothing in 1.0.
    this.visible = (part) => part;
    this.showsAppend = true;
    this.showsErrorData = true;
    this.deliveryType = 'application/a2a+json';
  }

  /** Sends and waits, or with `immediately` does not. Answers a plain task or message. */
  async send(content, { taskId, contextId, messageId, immediately, historyLength, metadata, webhook } = {}) {
    return plainReply(
      await this.sdk.sendMessage({
        tenant: '',
        message: message(content, { taskId, contextId, messageId, metadata }),
        configuration: {
          acceptedOutputModes: [],
          taskPushNotificationConfig: webhook && sdkWebhook(webhook),
          historyLength,
          returnImmediately: immediately ?? false,
        },
        metadata: undefined,
      }),
    );
  }

  async *stream(content, { taskId, contextId, signal, webhook } = {}) {
    const request = {
      tenant: '',
      message: message(content, { taskId, contextId }),
      configuration: webhook && {
        acceptedOutputModes: [],
        taskPushNotificationConfig: sdkWebhook(webhook),
        returnImmediately: false,
      },
      metadata: undefined,
    };
    for await (const event of this.sdk.sendMessageStream(request, { signal })) {
      yield plainFrame(event);
    }
  }

  async *subscribe(id, { signal } = {}) {
    for await (const event of this.sdk.resubscribeTask({ tenant: '', id }, { signal })) {
      yield plainFrame(event);
    }
  }

  async get(id, { historyLength } = {}) {
    return plainTask(await this.sdk.getTask({ tenant: '', id, historyLength }));
  }

  async cancel(id) {
    return plainTask(await this.sdk.cancelTask({ tenant: '', id, metadata: undefined }));
  }

  async list({ status, ...filters } = {}) {
    const state = status ? taskStateFromJSON(`TASK_STATE_${status.toUpperCase().replace('-', '_')}`) : 0;
    const page = await this.sdk.listTasks({
      tenant: '',
      contextId: '',
      pageToken: '',
      status: state,
      ...filters,
    });
    return { ...page, tasks: page.tasks.map(plainTask) };
  }

  webhooks = {
    set: async (taskId, webhook) =>
      plainWebhook(await this.sdk.createTaskPushNotificationConfig(sdkWebhook(webhook, taskId))),
    get: async (taskId, id) => plainWebhook(await this.sdk.getTaskPushNotificationConfig({ tenant: '', taskId, id })),
    list: async (taskId) => {
      const request = { tenant: '', taskId, pageSize: 0, pageToken: '' };
      return (await this.sdk.listTaskPushNotificationConfig(request)).configs.map(plainWebhook);
    },
    delete: (taskId, id) => this.sdk.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
  };

  /** What a webhook got, read by the SDK's own type. */
  readDelivery(body) {
    return plainFrame(StreamResponse.fromJSON(JSON.parse(body)));
  }

  /** The card for this caller, which the SDK asks for where the public one promises it. */
  fullCard() {
    return this.sdk.getAgentCard();
  }

  security() {
    return securityOf(this.card);
  }

  /** The HTTP status of a failed call, or the one that its code of gRPC stands for. */
  statusOf(error) {
    return this.binding === 'grpc' ? HTTP_STATUS[error.status] : this.caller.status;
  }

  // The SDK's client returns the public card unasked where it promises no other, so the transport is
  // asked directly: the server has to say it too.
  extendedCard() {
    const options = { serviceParameters: { 'A2A-Version': this.sdk.protocolVersion } };
    return this.sdk.transport.getExtendedAgentCard({ tenant: '' }, options);
  }

  /** Insists that `error` is the SDK's own error of that name, with the code or status it exposes. */
  assertRefusal(error, name) {
    const expected = REFUSALS[name];
    if (this.binding === 'jsonrpc') {
      assert.ok(error instanceof expected.type, `expected ${name}, got ${say(error)}`);
      assert.equal(error.envelopeCode, expected.code, `the code of ${say(error)}`);
      return;
    }
    if (this.binding === 'grpc') {
      assert.ok(error instanceof expected.type, `expected ${name}, got ${say(error)}`);
      assert.equal(error.status, expected.grpc, `the status of ${say(error)}`);
      return;
    }
    // Over HTTP+JSON the SDK names an error by its ErrorInfo reason. Bad parameters are described by
    // a BadRequest, which needs no ErrorInfo beside it; the SDK then throws its base class.
    const isBare = name === 'InvalidParams' && error instanceof A2AError && error.name === 'A2AError';
    assert.ok(isBare || error instanceof expected.type, `expected ${name}, got ${say(error)}`);
    assert.equal(error.statusCode, expected.status, `the status of ${say(error)}`);
  }

  /** The task id that an error names, as each binding exposes it. */
  taskNamedBy(error) {
    return this.binding === 'jsonrpc' ? error.data?.[0]?.metadata?.taskId : error.metadata?.taskId;
  }
}

/** What the card wants to see, by the name of the scheme: kind and detail. */
function securityOf({ securitySchemes }) {
  const plain = {
    httpAuthSecurityScheme: ({ scheme }) => ['http', scheme],
    apiKeySecurityScheme: ({ name }) => ['apiKey', name],
    oauth2SecurityScheme: ({ flows }) => ['oauth2', flows?.flow?.value.tokenUrl],
  };
  const schemes = Object.entries(securitySchemes);
  return Object.fromEntries(schemes.map(([name, { scheme }]) => [name, plain[scheme.$case](scheme.value)]));
}

function message(content, { taskId, contextId, messageId, metadata }) {
  const parts = typeof content === 'string' ? [{ text: content }] : content;
  return {
    messageId: messageId ?? randomUUID(),
    taskId: taskId ?? '',
    contextId: contextId ?? '',
    role: Role.ROLE_USER,
    parts: parts.map(sdkPart),
    metadata,
    extensions: [],
    referenceTaskIds: [],
  };
}

function sdkWebhook({ id, url, token }, taskId = '') {
  return { tenant: '', taskId, id, url, token: token ?? '', authentication: undefined };
}

/** A webhook is `{taskId, id, url}`, with `token` only if the server told it. */
function plainWebhook({ taskId, id, url, token }) {
  return { taskId, id, url, ...(token && { token }) };
}

function sdkPart({ text, bytes, url, data, name, type, metadata }) {
  const content =
    text !== undefined ? { $case: 'text', value: text }
    : bytes !== undefined ? { $case: 'raw', value: Buffer.from(bytes, 'base64') }
    : url !== undefined ? { $case: 'url', value: url }
    : { $case: 'data', value: data };
  return { content, filename: name ?? '', mediaType: type ?? '', metadata };
}

function plainPart({ content, filename, mediaType, metadata }) {
  const file = { ...(filename && { name: filename }), ...(mediaType && { type: mediaType }) };
  const plain = {
    text: () => ({ text: content.value }),
    raw: () => ({ bytes: content.value.toString('base64'), ...file }),
    url: () => ({ url: content.value, ...file }),
    data: () => ({ data: content.value }),
  }[content?.$case];
  assert.ok(plain, 'a part without content');
  return metadata ? { ...plain(), metadata } : plain();
}

function plainReply(reply) {
  return 'messageId' in reply ? plainMessage(reply) : plainTask(reply);
}

function plainTask(task) {
  return {
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    ...plainStatus(task.status),
    artifacts: task.artifacts.map(plainArtifact),
    history: task.history.map(plainMessage),
  };
}

function plainStatus(status) {
  assert.notEqual(status.state, TaskState.UNRECOGNIZED, 'a state that the SDK does not know');
  const state = taskStateToJSON(status.state).replace('TASK_STATE_', '').replace('_', '-').toLowerCase();
  return { state, message: status.message && plainMessage(status.message), timestamp: status.timestamp };
}

function plainMessage(message) {
  assert.notEqual(message.role, Role.UNRECOGNIZED, 'a role that the SDK does not know');
  return {
    kind: 'message',
    id: message.messageId,
    role: roleToJSON(message.role).replace('ROLE_', '').toLowerCase(),
    taskId: message.taskId || undefined,
    contextId: message.contextId || undefined,
    parts: message.parts.map(plainPart),
    metadata: message.metadata,
  };
}

function plainArtifact(artifact) {
  return { id: artifact.artifactId, name: artifact.name || undefined, parts: artifact.parts.map(plainPart) };
}

function plainFrame({ payload }) {
  const { $case, value } = payload ?? {};
  switch ($case) {
    case 'task':
      return plainTask(value);
    case 'message':
      return plainMessage(value);
    case 'statusUpdate':
      return { kind: 'status', taskId: value.taskId, contextId: value.contextId, ...plainStatus(value.status) };
    case 'artifactUpdate':
      return {
        kind: 'artifact',
        taskId: value.taskId,
        contextId: value.contextId,
        artifact: plainArtifact(value.artifact),
        append: value.append,
        last: value.lastChunk,
      };
    default:
      throw new Error('a stream frame that holds nothing the SDK knows');
  }
}

function say(error) {
  const code = error?.envelopeCode ?? error?.statusCode ?? error?.status ?? 'no code';
  return `${error?.name ?? typeof error} (${code}): ${error?.message}`;
}

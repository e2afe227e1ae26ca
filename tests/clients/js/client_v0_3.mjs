// SDK 0.3.13 (A2A 0.3) behind the plain nouns that the cases speak; client_v1.mjs describes them.
//
// Over JSON-RPC this SDK hands out what the server sent, unread. Over HTTP+JSON it translates from
// ProtoJSON and drops file names, part metadata, `append` and the data of errors on the way:
// `visible`, `showsAppend` and `showsErrorData` tell the cases what cannot be seen from here.

import assert from 'node:assert/strict';
import {
  AuthenticatedExtendedCardNotConfiguredError,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';
import {
  message,
  plainFrame,
  plainReply,
  plainSecurity,
  plainTask,
  plainWebhook,
  readDelivery,
} from './kind_json.mjs';

export const PROTOCOL_NAMES = { jsonrpc: 'JSONRPC', http_json: 'HTTP+JSON' };

const REFUSALS = {
  TaskNotFound: { type: TaskNotFoundError, code: -32001 },
  TaskNotCancelable: { type: TaskNotCancelableError, code: -32002 },
  UnsupportedOperation: { type: UnsupportedOperationError, code: -32004 },
  ExtendedCardNotConfigured: { type: AuthenticatedExtendedCardNotConfiguredError, code: -32007 },
  // The SDK has no class of its own for this one.
  InvalidParams: { type: Error, code: -32602 },
};

/** Resolves the card as a user of the SDK does, and builds the client that prefers the binding. A caller authenticates. */
export async function connect(url, binding, caller) {
  const fetchImpl = caller && createAuthenticatingFetchWithRetry(caller.fetch, caller);
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  const card = await cardResolver.resolve(url);
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

class PlainClient {
  constructor(sdk, card, binding) {
    this.sdk = sdk;
    this.card = card;
    this.binding = binding;
    this.showsAppend = binding === 'jsonrpc';
    this.showsErrorData = binding === 'jsonrpc';
    this.deliveryType = 'application/json';
    this.readDelivery = readDelivery;
    this.visible = binding === 'jsonrpc' ? (part) => part : withoutNameAndMetadata;
  }

  /** Sends and waits, or with `immediately` does not. Answers a plain task or message. */
  async send(content, { taskId, contextId, messageId, immediately, historyLength, metadata, webhook } = {}) {
    // Over HTTP+JSON `blocking: false` is ProtoJSON's default and is not written: the server gets a
    // configuration without it, and that has to mean what the caller said.
    const params = {
      message: message(content, { taskId, contextId, messageId, metadata }),
      configuration: { blocking: !immediately, historyLength, ...(webhook && { pushNotificationConfig: webhook }) },
    };
    return plainReply(await this.sdk.sendMessage(params));
  }

  async *stream(content, { taskId, contextId, signal, webhook } = {}) {
    const params = {
      message: message(content, { taskId, contextId }),
      ...(webhook && { configuration: { pushNotificationConfig: webhook } }),
    };
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

  webhooks = {
    set: async (taskId, pushNotificationConfig) =>
      plainWebhook(await this.sdk.setTaskPushNotificationConfig({ taskId, pushNotificationConfig })),
    get: async (id, pushNotificationConfigId) =>
      plainWebhook(await this.sdk.getTaskPushNotificationConfig({ id, pushNotificationConfigId })),
    list: async (id) => (await this.sdk.listTaskPushNotificationConfig({ id })).map(plainWebhook),
    delete: (id, pushNotificationConfigId) =>
      this.sdk.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
  };

  /** The card for this caller, which the SDK asks for where the public one promises it. */
  fullCard() {
    return this.sdk.getAgentCard();
  }

  /** What the card wants to see, by the name of the scheme: kind and detail. */
  security() {
    return plainSecurity(this.card);
  }

  // The SDK's client returns the public card unasked where it promises no other, so the transport is
  // asked directly: the server has to say it too.
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

function say(error) {
  const said = unwrapped(error);
  const code = said?.errorResponse?.error?.code ?? 'no code';
  return `${said?.constructor?.name ?? typeof said} (${code}): ${error?.message}`;
}

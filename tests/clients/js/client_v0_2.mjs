// SDK 0.2.5 (A2A 0.2) behind the plain nouns that the cases speak; client_v1.mjs describes them.
//
// This SDK has one class, speaks JSON-RPC only, and hands out what the server sent, unread. An error
// comes back as an envelope, and in a stream as an error that tells the code in its text. An answer
// with a wrong id is only complained of on the console, so that is listened to. It has no way to hang
// up, and none to authenticate; but it fetches with the global `fetch`, and that one can be told to.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { A2AClient } from '@a2a-js/sdk/client';
import {
  message,
  plainFrame,
  plainReply,
  plainSecurity,
  plainTask,
  plainWebhook,
  readDelivery,
} from './kind_json.mjs';

// Releases before 0.2.6 allow no configuration without them.
const MODES = ['text/plain', 'application/json'];

const CODES = {
  TaskNotFound: -32001,
  TaskNotCancelable: -32002,
  UnsupportedOperation: -32004,
  InvalidParams: -32602,
};

/** All that the SDK has said on the console so far. */
export const complaints = [];
for (const level of ['warn', 'error']) {
  const print = console[level];
  console[level] = (...words) => {
    complaints.push(words.join(' '));
    print(...words);
  };
}

/** The signal that breaks the connection of the request which is sent within it, and the caller who sends it. */
const breaking = new AsyncLocalStorage();
const calling = new AsyncLocalStorage();
const plainFetch = globalThis.fetch;
globalThis.fetch = async (resource, options) => {
  const caller = calling.getStore();
  const headers = { ...options?.headers, ...(await caller?.headers()) };
  const response = await plainFetch(resource, { ...options, headers, signal: breaking.getStore() });
  if (caller) {
    caller.status = response.status;
  }
  return response;
};

/** Builds the client as a user of the SDK does: from the address of the server. A caller shows what the card asks for. */
export async function connect(url, binding, caller) {
  assert.equal(binding, 'jsonrpc', 'the only binding of this SDK');
  const sdk = new A2AClient(url);
  const card = await sdk.getAgentCard();
  caller?.knowing(plainSecurity(card));
  return new PlainClient(caller ? inTheNameOf(caller, sdk) : sdk, card, binding, url);
}

/** The SDK, each of whose calls is this caller's. */
function inTheNameOf(caller, sdk) {
  return new Proxy(sdk, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== 'function') {
        return member;
      }
      return (...given) => ofCaller(caller, calling.run(caller, () => member.apply(target, given)));
    },
  });
}

/** A stream sends its request with the first step. */
function ofCaller(caller, result) {
  if (!result?.[Symbol.asyncIterator]) {
    return result;
  }
  return {
    next: () => calling.run(caller, () => result.next()),
    return: () => result.return(),
  };
}

class PlainClient {
  constructor(sdk, card, binding, url) {
    this.sdk = sdk;
    this.card = card;
    this.url = url;
    this.binding = binding;
    // What the SDK hides from its user: nothing.
    this.visible = (part) => part;
    this.showsAppend = true;
    this.showsErrorData = true;
    this.deliveryType = 'application/json';
    this.readDelivery = readDelivery;
  }

  /** Sends and waits, or with `immediately` does not. Answers a plain task or message. */
  async send(content, { taskId, contextId, messageId, immediately, historyLength, metadata, webhook } = {}) {
    const configuration = {
      acceptedOutputModes: MODES,
      blocking: !immediately,
      historyLength,
      ...(webhook && { pushNotificationConfig: webhook }),
    };
    return this.sendConfigured(content, configuration, { taskId, contextId, messageId, metadata });
  }

  /** Sends with this configuration, or with none. */
  async sendConfigured(content, configuration, about = {}) {
    return plainReply(result(await this.sdk.sendMessage({ message: message(content, about), configuration })));
  }

  async *stream(content, { taskId, contextId, signal, webhook } = {}) {
    const configuration = { acceptedOutputModes: MODES, ...(webhook && { pushNotificationConfig: webhook }) };
    const params = { message: message(content, { taskId, contextId }), configuration };
    yield* frames(this.sdk.sendMessageStream(params), signal);
  }

  async *subscribe(id, { signal } = {}) {
    yield* frames(this.sdk.resubscribeTask({ id }), signal);
  }

  async get(id, { historyLength } = {}) {
    return plainTask(result(await this.sdk.getTask({ id, historyLength })));
  }

  async cancel(id) {
    return plainTask(result(await this.sdk.cancelTask({ id })));
  }

  // The SDK has no calls for the last two, so they go out by its inner one. `get` names the task alone,
  // as releases before 0.2.5 do.
  webhooks = {
    set: async (taskId, pushNotificationConfig) =>
      plainWebhook(result(await this.sdk.setTaskPushNotificationConfig({ taskId, pushNotificationConfig }))),
    get: async (id) => plainWebhook(result(await this.sdk.getTaskPushNotificationConfig({ id }))),
    list: async (id) => (await this.#call('list', { id })).map(plainWebhook),
    delete: (id, pushNotificationConfigId) => this.#call('delete', { id, pushNotificationConfigId }),
  };

  async #call(verb, params) {
    return result(await this.sdk._postRpcRequest(`tasks/pushNotificationConfig/${verb}`, params));
  }

  /** The card for this caller, at the place that 0.2 gives it. */
  fullCard() {
    return this.sdk.getAgentCard(this.url, 'agent/authenticatedExtendedCard');
  }

  /** What the card wants to see, by the name of the scheme: kind and detail. */
  security() {
    return plainSecurity(this.card);
  }

  /** Insists that `error` is a refusal with the code of that name. */
  assertRefusal(error, name) {
    assert.equal(codeOf(error), CODES[name], `expected ${name}, got ${error?.stack ?? error}`);
  }

  /** The task id that an error names. */
  taskNamedBy(error) {
    return error.data?.taskId;
  }
}

/** An error that came in an envelope. */
class Refused extends Error {
  constructor({ code, message, data }) {
    super(`${message} (${code})`);
    this.code = code;
    this.data = data;
  }
}

function result(envelope) {
  assert.equal(envelope.jsonrpc, '2.0');
  if (envelope.error) {
    throw new Refused(envelope.error);
  }
  return envelope.result;
}

/** The code of an error from an envelope, or the one that the SDK writes into the text of a stream's. */
function codeOf(error) {
  const [, told] = /^SSE event contained an error: .* \(Code: (-?\d+)\)/.exec(error?.message) ?? [];
  return error instanceof Refused ? error.code : Number(told);
}

async function* frames(events, signal) {
  try {
    // The request goes out with the first step.
    let step = await breaking.run(signal, () => events.next());
    while (!step.done) {
      yield plainFrame(step.value);
      step = await events.next();
    }
  } finally {
    await events.return();
  }
}

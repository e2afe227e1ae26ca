// The server that lets nobody in without a credential, over HTTPS, and callers with credentials for it.
//
// Node trusts the authority of its certificate by NODE_EXTRA_CA_CERTS.

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Who calls: an authentication handler as the SDKs take one. Like a program that has read nothing, it shows nothing at
 * first, finds in `WWW-Authenticate` what the server wants to see, and keeps to what was accepted.
 */
export class Caller {
  #scheme;
  #secret;
  #accepted = {};
  /** Of the last answer; the SDKs tell of it in words, if at all. */
  status = undefined;
  /** How many requests went out a second time, with a credential. */
  retries = 0;

  /** Without a secret, nobody. */
  constructor({ scheme, secret } = {}) {
    this.#scheme = scheme;
    this.#secret = secret;
  }

  /** The same caller, who takes from this card what to show, and shows it at once. */
  knowing(security) {
    if (!this.#secret) {
      return this;
    }
    const [kind, detail] = security[this.#scheme];
    this.#accepted = kind === 'apiKey' ? { [detail]: this.#secret } : { Authorization: `Bearer ${this.#secret}` };
    return this;
  }

  /** What the SDK's fetch with authentication goes around. */
  fetch = async (resource, options) => {
    const response = await fetch(resource, options);
    this.status = response.status;
    return response;
  };

  headers = async () => this.#accepted;

  shouldRetryWithHeaders = async (_request, response) => {
    if (response.status !== 401 || !this.#secret || Object.keys(this.#accepted).length > 0) {
      return undefined;
    }
    const wanted = response.headers.get('www-authenticate') ?? '';
    const [, header] = /ApiKey [^,]*, header="([^"]+)"/.exec(wanted) ?? [];
    this.retries += 1;
    if (this.#scheme === 'apiKey') {
      return header && { [header]: this.#secret };
    }
    return /^Bearer /.test(wanted) ? { Authorization: `Bearer ${this.#secret}` } : undefined;
  };

  onSuccessfulRetry = async (headers) => {
    this.#accepted = headers;
  };

  /** An interceptor of the SDK, for transports that do not use `fetch`. */
  before = async (args) => {
    const serviceParameters = { ...args.options?.serviceParameters, ...this.#accepted };
    args.options = { ...args.options, serviceParameters };
  };

  after = async () => {};
}

/** What the cases are given: `client(name)` is the SDK in the hands of one of the known callers. */
export class SecuredServer {
  #connect;

  /** `connect(url, binding, caller)` builds the client of one SDK. */
  constructor(told, binding, connect) {
    this.told = told;
    this.#connect = (caller) => connect(told.url, binding, caller);
  }

  static async read(file, binding, connect) {
    return new SecuredServer(JSON.parse(await readFile(file, 'utf8')), binding, connect);
  }

  client(name) {
    return this.clientOf(new Caller(this.told.callers[name]));
  }

  async clientOf(caller) {
    const client = await this.#connect(caller);
    return Object.assign(client, { caller });
  }

  nobody() {
    return this.clientOf(new Caller());
  }

  /** A token as a program gets one that knows no more than the card: it asks where the card says. */
  async tokenOfIssuer(fields = {}) {
    const { client_id, client_secret } = this.told.provider;
    let endpoint;
    while (!(endpoint = (await this.nobody()).security().oauth2[1])) {
      // The server has not read what the issuer says of itself.
      await sleep(100);
    }
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret, ...fields });
    return (await (await fetch(endpoint, { method: 'POST', body })).json()).access_token;
  }
}

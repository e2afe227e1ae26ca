// A receiver of webhooks on this machine: it keeps every request, and answers 204.

import { createServer } from 'node:http';

export class Receiver {
  #server;
  #deliveries = [];
  #waiting = [];

  /** Runs `body` with a receiver that listens, and closes it afterwards. */
  static async during(body) {
    const receiver = new Receiver();
    await receiver.#listen();
    try {
      return await body(receiver);
    } finally {
      receiver.#server.closeAllConnections();
      receiver.#server.close();
    }
  }

  url(path = '/hook') {
    return `http://127.0.0.1:${this.#server.address().port}${path}`;
  }

  /** The next request: `{method, path, headers, body}`. */
  async next() {
    return this.#deliveries.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** All deliveries up to the one in this state, each with what `read` makes of its body as `told`. */
  async until(read, state) {
    const seen = [];
    while (seen.at(-1)?.told.state !== state) {
      const delivery = await this.next();
      seen.push({ ...delivery, told: read(delivery.body) });
    }
    return seen;
  }

  async #listen() {
    this.#server = createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) {
        pieces.push(piece);
      }
      const { method, url: path, headers } = request;
      const delivery = { method, path, headers, body: Buffer.concat(pieces).toString() };
      response.writeHead(204).end();
      const resolve = this.#waiting.shift();
      resolve ? resolve(delivery) : this.#deliveries.push(delivery);
    });
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }
}

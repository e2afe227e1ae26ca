// The tiny runner: cases in, one line per case out.
//
// A case is a name and an async function. Each has its own time limit, so that a server which
// never answers costs one case and not the whole run. Lines are `ok - NAME` or
// `not ok - NAME: reason`; the last one counts them. No case at all is a failure too.

const LIMIT_MS = 20_000;

/** Reads `--url URL --binding jsonrpc|http_json|grpc --secured FILE`; the file tells of the server that asks for credentials. */
export function commandLine() {
  const given = process.argv.slice(2);
  const value = (flag) => (given.includes(flag) ? given[given.indexOf(flag) + 1] : undefined);
  const [url, binding, secured] = [value('--url'), value('--binding'), value('--secured')];
  if (!url || !secured || !['jsonrpc', 'http_json', 'grpc'].includes(binding)) {
    console.error('usage: --url URL --binding jsonrpc|http_json|grpc --secured FILE');
    process.exit(2);
  }
  return { url, binding, secured };
}

export class Report {
  #prefix;
  #passed = 0;
  #failed = 0;

  constructor(prefix) {
    this.#prefix = prefix;
  }

  /** Runs one case and returns what it returned, or undefined when it failed. */
  async run(name, body) {
    let timer;
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no end after ${LIMIT_MS / 1000} s`)), LIMIT_MS);
    });
    try {
      const result = await Promise.race([body(), limit]);
      this.#passed += 1;
      console.log(`ok - ${this.#prefix}: ${name}`);
      return result;
    } catch (error) {
      this.#failed += 1;
      console.log(`not ok - ${this.#prefix}: ${name}: ${oneLine(error)}`);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs `{name: case}` in order; every case is given `client`. */
  async runAll(cases, client) {
    for (const [name, body] of Object.entries(cases)) {
      await this.run(name, () => body(client));
    }
  }

  /** Prints the count and leaves; streams that a failed case left open do not keep us. */
  finish() {
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    process.exit(this.#failed > 0 || this.#passed === 0 ? 1 : 0);
  }
}

function oneLine(error) {
  const cause = error?.cause ? ` (cause: ${error.cause.message ?? error.cause})` : '';
  const text = error instanceof Error ? `${error.message}${cause}` : `threw ${JSON.stringify(error)}`;
  return text.replace(/\s+/g, ' ').trim().slice(0, 800);
}

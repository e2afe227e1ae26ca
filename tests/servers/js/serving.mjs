// Runs the application of an SDK: `SCRIPT --port N [--binding jsonrpc|http_json]`.
//
// A server binds 127.0.0.1, prints its address as the one line of its output when it is ready, and ends with SIGTERM or
// with its standard input, so it cannot outlive whoever started it. Without `--binding` its card offers all that it
// speaks.

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

export const BINDINGS = {
  jsonrpc: { name: 'JSONRPC', path: '/a2a/jsonrpc' },
  http_json: { name: 'HTTP+JSON', path: '/a2a/rest' },
};

/** `application(url, bindings)` builds the application for the address and the bindings that its card offers. */
export function main(application) {
  const options = { port: { type: 'string', default: '0' }, binding: { type: 'string' } };
  const { port, binding } = parseArgs({ options }).values;
  // The output of the SDKs goes where logs go: ours is one line.
  console.log = console.warn = console.error;
  const server = createServer();
  server.listen(Number(port), '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}`;
    server.on('request', application(url, binding ? [binding] : Object.keys(BINDINGS)));
    process.stdout.write(`${url}\n`);
  });
  process.on('SIGTERM', () => process.exit(0));
  process.stdin.on('end', () => process.exit(0)).resume();
}

/** What all cards say. */
export const CARD = {
  name: 'Words',
  description: 'Obeys the first word of a message',
  version: '1.0.0',
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'words', name: 'Words', description: 'Obeys words', tags: ['test'] }],
};

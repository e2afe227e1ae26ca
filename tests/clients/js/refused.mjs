// A refusal is an answer too: the SDK must throw its own error for it, not choke on the reply.

import assert from 'node:assert/strict';
import { all } from './frames.mjs';

/** Calls `ask` and insists that it fails as `name`; a stream is read until it does. Returns the error. */
export async function refused(client, name, ask) {
  let answer;
  try {
    answer = await ask();
    answer = answer?.[Symbol.asyncIterator] ? await all(answer) : answer;
  } catch (error) {
    client.assertRefusal(error, name);
    return error;
  }
  assert.fail(`expected ${name}, got an answer: ${JSON.stringify(answer)}`);
}

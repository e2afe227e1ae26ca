// The tools of coding-agent-a2a, as its hosts use them: results are JSON in one text.

import assert from 'node:assert/strict';

import { until, words } from './stage.mjs';

async function call(client, name, args) {
  const result = await client.call(`coding_agent_${name}`, args);
  assert(!result.isError && result.content.length === 1, words(result));
  return JSON.parse(words(result));
}

export async function aJobIsRunPolledAndRead(stage) {
  const client = await stage.client();
  const { job_id: jobId } = await call(client, 'run', { task: 'stream 10 50', profile: 'MID' });
  const events = [];
  await until(async () => {
    const polled = await call(client, 'poll', { jobId, sinceLine: events.at(-1)?.line ?? 0 });
    events.push(...polled.events);
    return polled.done;
  }, 'the job is done');
  const lines = events.map((event) => event.line);
  assert.deepEqual(lines, [...new Set(lines)].sort((one, other) => one - other));
  assert.equal(events[0].state, 'submitted');
  assert.equal(events.at(-1).state, 'completed');
  const text = events.filter((event) => event.type === 'text').map((event) => event.text).join('');
  assert.match(text, /^chunk 1\n[^]*chunk 10\n$/);
  const { summary, done } = await call(client, 'result', { jobId });
  assert(done && summary.includes('chunk 10'), summary);
}

export async function aJobIsCancelled(stage) {
  const client = await stage.client();
  const { job_id: jobId } = await call(client, 'run', { task: 'slow 50 never' });
  assert.equal((await call(client, 'result', { jobId })).done, false);
  assert.deepEqual(await call(client, 'cancel', { jobId }), { cancelled: true });
  const events = await until(async () => {
    const polled = await call(client, 'poll', { jobId });
    return polled.done && polled.events;
  }, 'the job is done');
  assert.equal(events.at(-1).state, 'canceled');
}

export async function theAgentTellsOfItself(stage) {
  const info = await call(await stage.client(), 'info', {});
  assert(info.adapter === 'demo' && info.version && info.capabilities.streaming, JSON.stringify(info));
}

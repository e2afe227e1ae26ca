// The agent of both servers here: it obeys the first word of a message, as Sabir's demo agent does.
//
// Two words are its own, by which a client sees what others have done here. `running` tells how many other turns are
// running, so what a cancel has stopped. `latest` tells the ids of the task and the context of the last turn that was
// something else.
//
// What a version spells in its own way (parts and events) comes from outside, as `spelling`. A turn that is canceled
// stops where it waits; the event that says so comes from `cancelTask`.

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

export class WordsAgent {
  #spelling;
  #turns = new Map();
  running = 0;
  latest = { task: '', context: '' };

  constructor(spelling) {
    this.#spelling = spelling;
  }

  async execute(context, bus) {
    const text = this.#spelling.textOf(context.userMessage);
    const [word, rest] = split(text);
    if (word !== 'latest') this.latest = { task: context.taskId, context: context.contextId };
    if (word === 'message' && !context.task) {
      bus.publish(this.#spelling.message(context, rest || 'hello'));
      return;
    }
    const stop = new AbortController();
    this.#turns.set(context.taskId, { stop, context });
    this.running += 1;
    try {
      await new Turn(this, this.#spelling, context, bus, stop.signal).run(text);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      this.running -= 1;
    }
  }

  async cancelTask(taskId, bus) {
    // Of a task that waits for its next message this is the turn that asked.
    const { stop, context } = this.#turns.get(taskId);
    stop.abort();
    bus.publish(this.#spelling.status(context, 'canceled'));
  }
}

// One message of one task.
class Turn {
  constructor(agent, spelling, context, bus, signal) {
    Object.assign(this, { agent, spelling, context, bus, signal });
  }

  async run(text) {
    for (const event of this.spelling.opening(this.context)) this.bus.publish(event);
    this.status('working');
    await this.obey(text);
  }

  async obey(text) {
    const [word, rest] = split(text);
    // A word whose numbers are missing is plain text.
    if (!(Object.hasOwn(WORDS, word) && (await WORDS[word](this, rest, text)))) this.echo(text);
  }

  echo(text) {
    const others = this.context.userMessage.parts.filter((part) => !this.spelling.isText(part));
    this.complete([...(text ? [this.spelling.text(`echo: ${text}`)] : []), ...others]);
  }

  complete(parts) {
    this.artifact({ id: randomUUID(), parts });
    return this.status('completed');
  }

  artifact(chunk) {
    this.bus.publish(this.spelling.artifact(this.context, chunk));
  }

  status(state, text) {
    this.bus.publish(this.spelling.status(this.context, state, text));
    return true;
  }
}

// Each says whether it understood the rest of the text.
const WORDS = {
  async slow(turn, rest, text) {
    const [seconds, after] = split(rest);
    if (!isNumber(seconds)) return false;
    await wait(Number(seconds) * 1000, undefined, { signal: turn.signal });
    if (Object.hasOwn(WORDS, split(after)[0])) await turn.obey(after);
    else turn.echo(text);
    return true;
  },

  async stream(turn, rest) {
    const [count, pause = '50', ...more] = rest.split(/\s+/);
    if (!/^[1-9]\d*$/.test(count) || !isNumber(pause) || more.length > 0) return false;
    for (let i = 1; i <= Number(count); i += 1) {
      const parts = [turn.spelling.text(`chunk ${i}\n`)];
      turn.artifact({ id: 'stream', parts, append: i > 1, lastChunk: i === Number(count) });
      if (i < Number(count)) await wait(Number(pause), undefined, { signal: turn.signal });
    }
    return turn.status('completed');
  },

  fail: (turn, rest) => turn.status('failed', rest || 'failed'),
  reject: (turn, rest) => turn.status('rejected', rest),
  ask: (turn, rest) => turn.status('input-required', rest),
  auth: (turn, rest) => turn.status('auth-required', rest),

  file: (turn) => turn.complete([turn.spelling.file('Hello file', 'output.txt', 'text/plain')]),
  url: (turn) => turn.complete([turn.spelling.url('https://example.com/output.txt', 'output.txt', 'text/plain')]),
  data: (turn) => turn.complete([turn.spelling.data({ key: 'value', count: 42 })]),
  running: (turn) => turn.complete([turn.spelling.text(`running: ${turn.agent.running - 1}`)]),
  latest: (turn) => turn.complete([turn.spelling.data(turn.agent.latest)]),
};

// The first word, and the rest.
function split(text) {
  const [word, ...rest] = text.split(' ');
  return [word, rest.join(' ').trim()];
}

function isNumber(text) {
  return /^\d+(\.\d+)?$/.test(text);
}

// Reading streams: all of one, the first part of one, and what a reader has on the screen after it.

import assert from 'node:assert/strict';

/** Every frame until the server closes the stream. */
export async function all(stream) {
  const frames = [];
  for await (const frame of stream) {
    frames.push(frame);
  }
  return frames;
}

/** Opens a stream, reads until it has seen `chunks` artifact frames, and breaks the connection. */
export async function firstChunks(open, chunks) {
  const connection = new AbortController();
  const frames = [];
  for await (const frame of open(connection.signal)) {
    frames.push(frame);
    if (frames.filter(({ kind }) => kind === 'artifact').length === chunks) {
      break;
    }
  }
  // Leaving the loop is not enough: the SDKs 0.2.5 and 0.3.13 then keep the connection open, unread.
  connection.abort();
  return frames;
}

/** One word per frame: `task submitted`, `working`, `chunk`, `last chunk`, `message`. */
export function outline(frames) {
  return frames.map((frame) => {
    switch (frame.kind) {
      case 'task':
        return `task ${frame.state}`;
      case 'status':
        return frame.state;
      case 'artifact':
        return frame.last ? 'last chunk' : 'chunk';
      default:
        return frame.kind;
    }
  });
}

/**
 * The text of each artifact as a reader of these frames has it at the end: `Map(id -> text)`.
 * A task frame replaces everything, a chunk is appended or starts anew as it says. A client that
 * does not show `append` takes every chunk of a known artifact as an addition.
 */
export function assembled(frames, { showsAppend }) {
  const texts = new Map();
  for (const frame of frames) {
    if (frame.kind === 'task') {
      texts.clear();
      frame.artifacts.forEach(({ id, parts }) => texts.set(id, textOf(parts)));
    }
    if (frame.kind === 'artifact') {
      const { id, parts } = frame.artifact;
      const isAddition = showsAppend ? frame.append : texts.has(id);
      assert.ok(!isAddition || texts.has(id), 'a chunk is appended to an artifact that nobody started');
      texts.set(id, (isAddition ? texts.get(id) : '') + textOf(parts));
    }
  }
  return texts;
}

/** The text parts of a message or an artifact, joined. */
export function textOf(parts) {
  return parts.map(({ text }) => text ?? '').join('');
}

/** What `stream N` says in all: `chunk 1\n` to `chunk N\n`. */
export function chunks(count) {
  return Array.from({ length: count }, (_, i) => `chunk ${i + 1}\n`).join('');
}

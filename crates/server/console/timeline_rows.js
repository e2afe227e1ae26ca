// Events as rows of a timeline. Pieces of one artifact are joined, and a tool call is one row with its result.

import { button, fill, h, setText } from './dom.js';
import { ago, bytes, count } from './format.js';
import { folded, renderPart, renderParts, renderText, TOOL_CALL } from './parts.js';
import { questionOf } from './question.js';
import { isWaiting, ofA2a } from './state.js';

/** A row of joined pieces is not made longer than this, so that rows can be dropped one by one. */
const MOST_TEXT = 12_000;
const MOST_PIECES = 1000;

/** Makes rows of events in their order. `links` has the addresses and acts of a row's buttons. */
export class RowMaker {
  #links;
  #last = null;
  #time = null;
  #tools = new Map();

  constructor(links) {
    this.#links = links;
  }

  /** The row that the event is in, and whether it is a new one. */
  add(event) {
    const status = (event.statusUpdate ?? event.task)?.status;
    if (status?.timestamp) this.#time = status.timestamp;
    const tool = status?.message?.metadata?.[TOOL_CALL];
    const begun = tool && this.#tools.get(tool.toolCallId);
    if (begun) {
      begun.last = event.number;
      begun.number();
      begun.show(tool);
      return { row: begun, isNew: false };
    }
    if (event.artifactUpdate && this.#last?.takes?.(event.artifactUpdate)) {
      this.#last.piece(event.number, event.artifactUpdate);
      return { row: this.#last, isNew: false };
    }
    const row = this.#row(event, status, tool);
    this.#last = row;
    return { row, isNew: true };
  }

  #row(event, status, tool) {
    if (event.artifactUpdate) return artifactRow(this.#base(event, 'artifact'), event.artifactUpdate, this.#links);
    if (tool?.toolCallId) {
      const row = toolRow(this.#base(event, 'tool'), tool);
      this.#tools.set(tool.toolCallId, row);
      return row;
    }
    if (event.task) return createdRow(this.#base(event, 'created'), event.task);
    if (event.message) return messageRow(this.#base(event, 'message'), event.message);
    return statusRow(this.#base(event, 'status'), status);
  }

  #base(event, kind) {
    const label = h('a.number');
    const title = h('span.title');
    const body = h('div.body');
    const node = h('li', { class: `event ${kind}`, 'data-event': event.number },
      label, h('span.rail', { 'aria-hidden': 'true' }), h('div.content',
        h('div.head', title, h('span.tools',
          h('a', { href: this.#links.from(event.number) }, 'Replay from here'),
          h('a', { href: this.#links.raw(event.number), 'data-raw': event.number }, 'Raw')), ago(this.#time)), body));
    const row = { first: event.number, last: event.number, node, title, body, kind, size: 1 };
    row.number = () => {
      const range = `${row.first}–${row.last}`;
      setText(label, row.first === row.last ? String(row.first) : range.length < 8 ? range : `${row.first}…`);
      label.title = `Link to event ${row.first}`;
      label.href = this.#links.from(row.first);
    };
    row.number();
    return row;
  }
}

function createdRow(row, task) {
  fill(row.title, 'Created');
  fill(row.body, (task.history ?? []).map(bubble));
  row.messages = new Set((task.history ?? []).map((message) => message.messageId));
  // A snapshot shows what came before it.
  for (const artifact of task.artifacts ?? []) row.body.append(h('div.whole', renderParts(artifact.parts)));
  return row;
}

function messageRow(row, message) {
  fill(row.title, message.role === 'ROLE_USER' ? 'Message' : 'Agent');
  fill(row.body, bubble(message));
  return row;
}

/** A message; what people write is shown as they wrote it. */
export function bubble(message) {
  const isUser = message.role === 'ROLE_USER';
  return h('div', { class: isUser ? 'bubble user' : 'bubble' }, renderParts(message.parts, { isPlain: isUser }));
}

function statusRow(row, status) {
  const state = ofA2a(status?.state);
  const words = state.replace('-', ' ');
  row.state = state;
  row.node.dataset.state = state;
  fill(row.title, words.charAt(0).toUpperCase() + words.slice(1));
  if (!status?.message) return row;
  row.messageId = status.message.messageId;
  if (isWaiting(state)) {
    row.message = status.message;
    row.close = () => {
      const question = questionOf(status.message);
      fill(row.body, renderText(question.text),
        question.tool && h('p.tool', 'Tool ', h('code', question.tool)),
        question.input !== undefined && folded(question.input, 'input'));
    };
    row.close();
  } else if (state === 'working') {
    row.node.classList.add('says');
    fill(row.body, renderParts(status.message.parts));
  } else fill(row.body, renderParts(status.message.parts));
  return row;
}

function toolRow(row, tool) {
  const phase = h('span.phase');
  const details = h('details', h('summary', h('code', String(tool.name)), ' ', h('span.brief'), phase));
  const args = h('div');
  const result = h('div');
  details.append(args, result);
  fill(row.title, details);
  row.show = (now) => {
    const name = now.phase === 'started' ? 'working' : now.phase;
    row.node.dataset.phase = now.phase;
    setText(phase, name);
    if (now.args !== undefined) {
      const shown = typeof now.args === 'object' && now.args ? Object.values(now.args)[0] : now.args;
      setText(details.querySelector('.brief'), typeof shown === 'string' ? shown.slice(0, 120) : '');
      fill(args, h('h4', 'Input'), folded(now.args, 'input'));
    }
    const said = now.error ?? now.result;
    if (said !== undefined) fill(result, h('h4', now.error === undefined ? 'Result' : 'Error'), h('pre.code', typeof said === 'string' ? said : JSON.stringify(said, null, 2)));
    else if (now.phase === 'started') fill(result, h('p.muted', 'No result yet.'));
  };
  row.show(tool);
  return row;
}

function artifactRow(row, update, links) {
  const { artifactId } = update.artifact;
  const about = h('span.muted');
  const isContinued = update.append === true;
  const more = isContinued && button('Whole artifact', () => links.artifact(artifactId), { class: 'quiet' });
  fill(row.title, h('span.name', update.artifact.name || 'artifact'), isContinued && h('span.muted', 'continued'), about, more);
  const blocks = [];
  let text = 0;
  let isDone = false;
  let grown = null;
  row.takes = (next) => next.append === true && !isDone && next.artifact.artifactId === artifactId && row.size < MOST_PIECES && text < MOST_TEXT;
  row.piece = (number, next) => {
    row.last = number;
    row.size += 1;
    row.add(next);
    row.number();
  };
  row.add = (next) => {
    isDone ||= next.lastChunk === true;
    for (const part of next.artifact.parts ?? []) {
      const open = blocks.at(-1);
      text += part.text?.length ?? 0;
      if (part.text !== undefined && open?.text !== undefined && open.mediaType === part.mediaType) {
        open.text += part.text;
        grown = open;
      } else {
        const block = part.text === undefined ? { node: renderPart(part) } : { ...part, node: h('div') };
        blocks.push(block);
        row.body.append(block.node);
        if (block.text !== undefined) grown = block;
      }
      if (grown && grown !== blocks.at(-1)) row.render();
    }
    row.isDirty = true;
  };
  // Pieces come faster than anybody can look: what has grown is drawn once per frame.
  row.render = () => {
    if (grown) fill(grown.node, renderText(grown.text, grown));
    grown = null;
    setText(about, `${row.size > 1 ? `${count(row.size)} pieces, ` : ''}${text ? bytes(text) : ''}`);
    row.isDirty = false;
  };
  row.add(update);
  row.render();
  return row;
}

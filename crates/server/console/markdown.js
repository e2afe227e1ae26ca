// A small part of Markdown, made into elements. There is no HTML in it and no picture: what is not known stays text.
// Line breaks stay as they were written, since much of what agents write is no Markdown at all.
//
// What an agent writes must not keep a browser busy, so the work grows no faster than the text: in no pattern may the same letters
// be shared in many ways by two repetitions, and the end of a mark is searched once, not once for each beginning.

import { h } from './dom.js';

const LONGEST = 200_000;
const DEEPEST = 6;
const MOST_COLUMNS = 100;

export function markdown(text) {
  if (text.length > LONGEST) return h('div.prose', h('pre.plain', text));
  return h('div.prose', blocks(text.replace(/\r\n?/g, '\n').split('\n'), 0));
}

/** Only addresses that a browser opens as a page or a letter. */
function safeLink(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function link(address, label = address) {
  const href = safeLink(address);
  return href ? h('a', { href, title: href, target: '_blank', rel: 'noopener noreferrer', referrerpolicy: 'no-referrer' }, label) : h('span', label);
}

// `[^]` is any letter. A `.` stops at U+2028, and then `\s+` before it would be tried at every length.
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+([^]*)$/;
const TASK = /^\[([ xX])\]\s+([^]*)$/;
const FENCE = /^\s{0,3}(`{3,}(?!`)|~{3,}(?!~))[^`]*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;

function blocks(lines, depth) {
  const made = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = headingOf(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const until = endOf(lines, at + 1, (other) => !other.trim().startsWith(fence[1]) || other.trim().slice(fence[1].length).trim());
      made.push(h('pre.code', h('code', lines.slice(at + 1, until).join('\n'))));
      at = until + 1;
    } else if (heading) {
      made.push(h(`h${Math.min(heading.level + 2, 6)}`, inline(heading.words, 0)));
      at += 1;
    } else if (RULE.test(line)) {
      made.push(h('hr'));
      at += 1;
    } else if (/^\s{0,3}>/.test(line) && depth < DEEPEST) {
      const until = endOf(lines, at, (other) => /^\s{0,3}>/.test(other));
      made.push(h('blockquote', blocks(lines.slice(at, until).map((other) => other.replace(/^\s{0,3}>\s?/, '')), depth + 1)));
      at = until;
    } else if (ITEM.test(line) && depth < DEEPEST) {
      const [list, until] = listAt(lines, at, depth);
      made.push(list);
      at = until;
    } else if (line.includes('|') && isTableLine(lines[at + 1] ?? '')) {
      const until = endOf(lines, at + 2, (other) => other.includes('|'));
      const rows = lines.slice(at + 2, until).map((row) => h('tr', cells(row).map((cell) => h('td', inline(cell, 0)))));
      const head = h('tr', cells(line).map((cell) => h('th', { scope: 'col' }, inline(cell, 0))));
      made.push(h('div.wide', h('table', h('thead', head), h('tbody', rows))));
      at = until;
    } else {
      const starts = (other) => !other.trim() || FENCE.test(other) || /^#{1,6}\s/.test(other) || RULE.test(other)
        || (depth < DEEPEST && (ITEM.test(other) || /^\s{0,3}>/.test(other)));
      const until = Math.max(endOf(lines, at, (other) => !starts(other)), at + 1);
      made.push(h('p', inline(lines.slice(at, until).join('\n'), 0)));
      at = until;
    }
  }
  return made;
}

function endOf(lines, from, belongs) {
  let at = from;
  while (at < lines.length && belongs(lines[at])) at += 1;
  return at;
}

function listAt(lines, from, depth) {
  const [, indent, mark] = ITEM.exec(lines[from]);
  const isOrdered = /\d/.test(mark);
  const items = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    const isNext = item && item[1].length <= indent.length + 1 && /\d/.test(item[2]) === isOrdered;
    if (isNext) items.push([item[3]]);
    else if (lines[at].trim() && (/^\s/.test(lines[at]) && indentOf(lines[at]) > indent.length)) items.at(-1).push(lines[at].slice(indent.length + 2));
    else if (!lines[at].trim() && indentOf(lines[at + 1] ?? '') > indent.length) items.at(-1).push('');
    else break;
    at += 1;
  }
  const list = h(isOrdered ? 'ol' : 'ul', { start: isOrdered ? parseInt(mark, 10) : null }, items.map((item) => {
    const [first, ...rest] = item;
    const task = TASK.exec(first);
    const mine = task ? [task[1] === ' ' ? '☐ ' : '☑ ', inline(task[2], 0)] : inline(first, 0);
    return h('li', mine, blocks(rest, depth + 1));
  }));
  return [list, at];
}

const indentOf = (line) => /^\s*/.exec(line)[0].length;

function headingOf(line) {
  const level = /^(#{1,6})\s/.exec(line)?.[1].length;
  if (!level) return null;
  const words = line.slice(level).trim();
  let end = words.length;
  while (words[end - 1] === '#') end -= 1;
  // A row of them at the end closes the heading; in `C#` it belongs to the word.
  if (end && /\S/.test(words[end - 1])) end = words.length;
  return end ? { level, words: words.slice(0, end).trimEnd() } : null;
}

const split = (row) => row.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

/** The line below the head of a table. */
const isTableLine = (line) => line.includes('|') && split(line).every((cell) => /^:?-+:?$/.test(cell));

/** Browsers are slow with tables of thousands of columns: the last cell has what is too much. */
function cells(row) {
  const all = split(row);
  return all.length <= MOST_COLUMNS ? all : [...all.slice(0, MOST_COLUMNS - 1), all.slice(MOST_COLUMNS - 1).join(' | ')];
}

/** Where a mark may begin. */
const MARK = /[`*_~[<]|https?:\/\//g;
const TICKS = /`+/g;
const LINK = /\[([^\][]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const BARE = /https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"\]]/y;

function inline(text, depth) {
  const made = [];
  const ends = new Ends(text);
  let plain = 0;
  for (let at = 0; depth < DEEPEST;) {
    const mark = matchAt(MARK, text, at);
    if (!mark) break;
    const { element, from = mark.index, until } = elementAt(text, mark.index, ends, depth);
    at = until;
    if (!element) continue;
    if (from > plain) made.push(text.slice(plain, from));
    made.push(element);
    plain = until;
  }
  if (plain < text.length) made.push(text.slice(plain));
  return made;
}

/** What begins at this mark, and where it ends. Without an element it stays text until there. */
function elementAt(text, at, ends, depth) {
  const inner = (tag, width, end) => ({ element: h(tag, inline(text.slice(at + width, end), depth + 1)), until: end + width });
  const isText = (index) => index < text.length && !/\s/.test(text[index]);
  const isWord = (index) => /\w/.test(text[index] ?? '');
  const nothing = { until: at + 1 };
  const letter = text[at];
  if (letter === '`') {
    const width = matchAt(TICKS, text, at)[0].length;
    const end = width <= 3 ? ends.ofCode(width, at + width) : Infinity;
    return end === Infinity ? { until: at + width } : { element: h('code', text.slice(at + width, end)), until: end + width };
  }
  if (letter === '*' || letter === '~') {
    if (text[at + 1] === letter) {
      const end = isText(at + 2) ? ends.ofPair(letter + letter, at + 3) : Infinity;
      return end === Infinity ? nothing : inner(letter === '*' ? 'strong' : 's', 2, end);
    }
    const end = letter === '*' && isText(at + 1) ? text.indexOf('*', at + 1) : -1;
    return end > 0 && isText(end - 1) ? inner('em', 1, end) : nothing;
  }
  if (letter === '_') {
    const width = text[at + 1] === '_' ? 2 : 1;
    const end = isText(at + width) && (width === 2 || !isWord(at - 1)) ? text.indexOf('_', at + width) : -1;
    const isEnd = end > at + width && isText(end - 1) && (width === 1 || text[end + 1] === '_') && !isWord(end + width);
    return isEnd ? inner(width === 2 ? 'strong' : 'em', width, end) : nothing;
  }
  if (letter === '[') {
    const match = matchAt(LINK, text, at);
    if (!match) return nothing;
    const [whole, label, target] = match;
    // A picture is shown as a link.
    return { element: safeLink(target) && link(target, label || target), from: text[at - 1] === '!' ? at - 1 : at, until: at + whole.length };
  }
  const match = matchAt(letter === '<' ? ANGLE : BARE, text, at);
  return match ? { element: link(match[1] ?? match[0]), until: at + match[0].length } : nothing;
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Finds where marks end. It is asked for places that only move on, so what was found is good until it is passed. */
class Ends {
  #text;
  #found = {};

  constructor(text) {
    this.#text = text;
  }

  /** Two letters after a word. */
  ofPair(pair, from) {
    return this.#next(pair, from, () => {
      let at = this.#text.indexOf(pair, from);
      while (at >= 0 && /\s/.test(this.#text[at - 1])) at = this.#text.indexOf(pair, at + 1);
      return at;
    });
  }

  /** So many backticks, no more and no fewer. */
  ofCode(width, from) {
    return this.#next(width, from, () => {
      let ticks = matchAt(TICKS, this.#text, from);
      while (ticks && ticks[0].length !== width) ticks = TICKS.exec(this.#text);
      return ticks?.index ?? -1;
    });
  }

  #next(mark, from, search) {
    if (!(this.#found[mark] >= from)) {
      const at = search();
      this.#found[mark] = at < 0 ? Infinity : at;
    }
    return this.#found[mark];
  }
}

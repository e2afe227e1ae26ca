// A small part of Markdown, made into elements. There is no HTML in it and no picture: what is not known stays text.
// Line breaks stay as they were written, since much of what agents write is no Markdown at all.

import { h } from './dom.js';

const LONGEST = 200_000;
const DEEPEST = 6;

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

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^\s{0,3}(```+|~~~+)\s*([^`]*)$/;
const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const TABLE = /^\s*\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/;

function blocks(lines, depth) {
  const made = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = line.length < 500 && HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const until = endOf(lines, at + 1, (other) => !other.trim().startsWith(fence[1]) || other.trim().slice(fence[1].length).trim());
      made.push(h('pre.code', h('code', lines.slice(at + 1, until).join('\n'))));
      at = until + 1;
    } else if (heading) {
      made.push(h(`h${Math.min(heading[1].length + 2, 6)}`, inline(heading[2], 0)));
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
    } else if (line.includes('|') && TABLE.test((lines[at + 1] ?? '').slice(0, 2000))) {
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
    const task = /^\[([ xX])\]\s+(.*)$/.exec(first);
    const mine = task ? [task[1] === ' ' ? '☐ ' : '☑ ', inline(task[2], 0)] : inline(first, 0);
    return h('li', mine, blocks(rest, depth + 1));
  }));
  return [list, at];
}

const indentOf = (line) => /^\s*/.exec(line)[0].length;
const cells = (row) => row.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

// Every repetition has an end: what agents write must not keep a browser busy.
const INLINE = /(?<!`)(`{1,3})(?!`)([\s\S]{1,2000}?)(?<!`)\1(?!`)|\*\*(?=\S)([\s\S]{1,2000}?)(?<=\S)\*\*|__(?=\S)([^_]{1,500}?)(?<=\S)__(?!\w)|~~(?=\S)([\s\S]{1,2000}?)(?<=\S)~~|\*(?=[^\s*])([^*]*?[^\s*])\*|(?<!\w)_(?=[^\s_])([^_]*?[^\s_])_(?!\w)|!?\[([^\][]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)|<((?:https?:\/\/|mailto:)[^\s<>]+)>|(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"\]])/;

function inline(text, depth) {
  const made = [];
  let rest = text;
  for (let match; depth < DEEPEST && (match = INLINE.exec(rest));) {
    if (match.index) made.push(rest.slice(0, match.index));
    const [whole, , code, bold, bold2, struck, italic, italic2, label, target, angle, bare] = match;
    const inner = (tag, words) => h(tag, inline(words, depth + 1));
    if (code !== undefined) made.push(h('code', code));
    else if (bold ?? bold2) made.push(inner('strong', bold ?? bold2));
    else if (struck) made.push(inner('s', struck));
    else if (italic ?? italic2) made.push(inner('em', italic ?? italic2));
    else if (target !== undefined) made.push(safeLink(target) ? link(target, label || target) : whole);
    else made.push(link(angle ?? bare));
    rest = rest.slice(match.index + whole.length);
  }
  if (rest) made.push(rest);
  return made;
}

// What messages and artifacts hold: text, data, files. Files are shown where that is safe, and saved as bytes that nothing runs.

import { bytes, count } from './format.js';
import { button, h } from './dom.js';
import { link, markdown } from './markdown.js';

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);
const MOST_PREVIEW = 256 * 1024;
const MOST_PICTURE = 4 * 1024 * 1024;

/** One part as an element. */
export function renderPart(part, { isPlain = false } = {}) {
  if (part.text !== undefined) return renderText(part.text, part, isPlain);
  if (part.data !== undefined) return folded(part.data);
  if (part.raw !== undefined) return renderFile(part);
  if (part.url !== undefined) {
    return h('p.file', h('span.tag', part.mediaType ?? 'link'), part.filename && `${part.filename} `, link(part.url));
  }
  return folded(part);
}

export const renderParts = (parts, options) => (parts ?? []).map((part) => renderPart(part, options));

export function renderText(text, { mediaType = '', filename = '' } = {}, isPlain = false) {
  if (/diff|patch/.test(mediaType) || /\.(diff|patch)$/.test(filename)) return renderDiff(text);
  if (/json/.test(mediaType)) return h('pre.code', text);
  if (isPlain) return h('div.prose.plain', text);
  return markdown(text);
}

function renderDiff(text) {
  const kind = { '+': 'added', '-': 'removed', '@': 'place' };
  const lines = text.length > MOST_PREVIEW ? [text] : text.split('\n');
  return h('pre.code.diff', lines.map((line) => h('span', { class: kind[line[0]] ?? '' }, `${line}\n`)));
}

/** JSON that is open when it is short. */
export function folded(value, label = 'data') {
  const text = JSON.stringify(value, null, 2) ?? 'null';
  const pre = h('pre.code', text);
  if (text.length < 1200) return pre;
  return h('details', h('summary', `${label}, ${bytes(text.length)}`), pre);
}

function renderFile(part) {
  const raw = decode(part.raw);
  const type = (part.mediaType ?? '').split(';')[0].trim().toLowerCase();
  const name = part.filename || 'file';
  const head = h('div.file',
    h('span.tag', type || 'file'), h('span.name', name), h('span.muted', bytes(raw.length)),
    downloadButton(raw, name));
  let preview = null;
  if (PICTURES.has(type) && raw.length <= MOST_PICTURE) {
    preview = h('img.picture', { alt: name, src: `data:${type};base64,${part.raw}` });
  } else if ((type.startsWith('text/') || /json|xml|yaml|javascript/.test(type)) && raw.length <= MOST_PREVIEW) {
    const text = new TextDecoder().decode(raw);
    preview = /diff|patch/.test(type) ? renderDiff(text) : h('pre.code', text);
  }
  return h('div', head, preview);
}

function decode(base64) {
  try {
    return Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** Saves bytes under a name without a path. The type says nothing, so no browser opens it. */
function downloadButton(content, name, label = 'Download') {
  return button(label, () => {
    const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
    const anchor = h('a', { href: url, download: name.replace(/^.*[\\/]/, '').replace(/[\0-\x1f<>:"|?*]/g, '_') || 'file' });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }, { class: 'quiet', 'aria-label': `Download ${name}` });
}

/** An artifact as one file: its text, its only file, or all of it as JSON. */
export function artifactDownload(artifact) {
  const parts = artifact.parts ?? [];
  const name = artifact.name || 'artifact';
  if (parts.length === 1 && parts[0].raw !== undefined) return downloadButton(decode(parts[0].raw), parts[0].filename || name);
  if (parts.every((part) => part.text !== undefined)) {
    const text = parts.map((part) => part.text).join('');
    return downloadButton(text, parts[0]?.filename || (/\.\w+$/.test(name) ? name : `${name}.txt`));
  }
  return downloadButton(JSON.stringify(artifact, null, 2), `${name}.json`);
}

export function sizeOf(artifact) {
  const sizes = (artifact.parts ?? []).map((part) => part.text?.length ?? (part.raw ? part.raw.length * 0.75 : JSON.stringify(part.data ?? part.url ?? '').length));
  return Math.round(sizes.reduce((sum, size) => sum + size, 0));
}

/** The tokens of messages and artifacts together; null where nobody counted. */
export function costOf(carriers) {
  let found = null;
  for (const carrier of carriers) {
    const cost = carrier?.metadata?.[COST];
    if (!cost?.usage) continue;
    found ??= { input: 0, output: 0, ms: 0 };
    found.input += Number(cost.usage.input_tokens) || 0;
    found.output += Number(cost.usage.output_tokens) || 0;
    found.ms += Number(cost.durationMs) || 0;
  }
  return found;
}

export const costText = (cost) => `${count(cost.input + cost.output)} tokens (${count(cost.input)} in, ${count(cost.output)} out)`;

const COST = 'https://proto-labs.ai/a2a/ext/cost-v1';
export const TOOL_CALL = 'https://proto-labs.ai/a2a/ext/tool-call-v1';

// The same request for a terminal or a program. Tokens never leave the session storage: programs read theirs from the environment.

import { at, below, taskPath, token } from './api.js';
import { copy } from './clipboard.js';
import { announce, button, h } from './dom.js';

/** A request that streams the events of a task after a number. */
export const followRequest = (task, after) => ({
  url: at(`${taskPath(task)}:subscribe`).href, method: 'GET',
  headers: { 'A2A-Version': '1.0', 'Last-Event-ID': String(after) }, isStream: true,
});

/** A request that sends a text to an agent. */
export const sendRequest = (agent, text) => ({
  url: at(`${below(agent)}message:send`).href, method: 'POST',
  headers: { 'A2A-Version': '1.0', 'Content-Type': 'application/json' },
  body: { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text }] } },
});

const LANGUAGES = { curl: asCurl, Python: asPython, JavaScript: asJavaScript };

/** A word of a shell, whatever is in it; without control characters, which a terminal may obey when it gets them by pasting. */
export const quoted = (text) => (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '').replaceAll("'", `'\\''`)}'`);

// Callers and agents choose ids and examples: none of them may become a flag, or the server that is spoken to.
const isUrl = (text) => /^[a-z][\w+.-]*:\/\//i.test(text);
export const watchCommand = (id) => `sabir watch ${id.startsWith('-') ? '-- ' : ''}${isUrl(id) ? `${at('').href} ` : ''}${quoted(id)}`;
export const sendCommand = (agent, text) => `sabir send ${agent ? `--agent=${quoted(agent)} ` : ''}${text.startsWith('-') || isUrl(text) ? '--text=' : ''}${quoted(text)}`;

function asCurl({ url, method, headers, body, isStream }) {
  const lines = [`curl ${isStream ? '-N' : '-s'} ${method === 'GET' ? '' : `-X ${method} `}${quoted(url)}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (token()) lines.push('-H "Authorization: Bearer $SABIR_TOKEN"');
  if (body) lines.push(`-d ${quoted(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}

// JSON writes strings as Python and JavaScript do, once everything beyond ASCII is escaped.
const literal = (value) => JSON.stringify(value).replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);

const members = (headers, secret) => [...Object.entries(headers).map(([name, value]) => `    ${literal(name)}: ${literal(value)},`),
  ...(token() ? [`    "Authorization": ${secret},`] : [])];

function asPython({ url, method, headers, body, isStream }) {
  return [
    `import ${token() ? 'os, ' : ''}urllib.request`, '',
    `request = urllib.request.Request(${literal(url)}, method=${literal(method)}, headers={`, ...members(headers, '"Bearer " + os.environ["SABIR_TOKEN"]'),
    // The text of the body is ASCII too: Python does not encode the two halves of an emoji.
    body ? `}, data=${literal(literal(body))}.encode())` : '})',
    'with urllib.request.urlopen(request) as response:',
    ...(isStream ? ['    for line in response:', '        if line.startswith(b"data:"):', '            print(line[5:].decode().strip())']
      : ['    print(response.read().decode())']),
  ].join('\n');
}

function asJavaScript({ url, method, headers, body, isStream }) {
  return [
    `const response = await fetch(${literal(url)}, {`, `  method: ${literal(method)},`, '  headers: {', ...members(headers, '`Bearer ${process.env.SABIR_TOKEN}`'), '  },',
    ...(body ? [`  body: ${literal(JSON.stringify(body))},`] : []), '});',
    ...(isStream ? ['for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);']
      : ['console.log(await response.json());']),
  ].join('\n');
}

/** A menu that copies a request; `request` is called when it is needed. */
export function copyMenu(request, label = 'Copy as') {
  const menu = h('details.menu', h('summary', { role: 'button' }, label),
    h('div.items', Object.entries(LANGUAGES).map(([name, write]) => button(name, async () => {
      await copy(write(request()));
      menu.open = false;
      announce(`Copied as ${name}`);
      const summary = menu.querySelector('summary');
      summary.classList.add('done');
      setTimeout(() => summary.classList.remove('done'), 1200);
    }))));
  menu.addEventListener('focusout', (event) => {
    if (!menu.contains(event.relatedTarget)) menu.open = false;
  });
  menu.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector('summary').focus();
  });
  return menu;
}

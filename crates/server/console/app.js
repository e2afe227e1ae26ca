// The frame around the pages: addresses, navigation, the number of open questions, keys and theme.

import { CONSOLE, countTasks, onUnauthorized, setToken, token } from './api.js';
import { every } from './connection.js';
import { button, h, setText } from './dom.js';
import { growOlder } from './format.js';
import { spelled } from './hidden_letters.js';
import { globalKeys, listen, moveRow, pageKeys, showKeys } from './keys.js';
import { askForToken } from './login.js';
import { GROUPS } from './state.js';
import { readStored, store } from './storage.js';
import * as agents from './agents.js';
import * as deliveries from './deliveries.js';
import * as system from './system.js';
import * as task from './task.js';
import * as tasks from './tasks.js';
import * as waiting from './waiting.js';

const PAGES = {
  tasks: { name: 'Tasks', key: 't', open: (context) => (context.id ? task : tasks).open(context) },
  waiting: { name: 'Waiting', key: 'w', open: waiting.open },
  agents: { name: 'Agents', key: 'a', open: agents.open },
  deliveries: { name: 'Deliveries', key: 'd', open: deliveries.open },
  system: { name: 'System', key: 's', open: system.open },
};
const main = document.getElementById('main');
const href = (path) => CONSOLE + path;
let page = new AbortController();
let words = '';
let questions = 0;

function go(path, isReplaced = false) {
  history[isReplaced ? 'replaceState' : 'pushState'](null, '', href(path));
  show();
}

/** A part of an address; one that is encoded badly names nothing. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function show() {
  page.abort();
  page = new AbortController();
  const [name, id] = location.pathname.slice(CONSOLE.length).split('/').slice(1).map(decoded);
  if (!PAGES[name]) return go(`/tasks${readStored('localStorage', 'sabir.filter') ?? ''}`, true);
  for (const link of document.querySelectorAll('#nav a[data-page]')) {
    if (link.dataset.page === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  pageKeys();
  main.replaceChildren();
  main.dataset.page = id ? `${name}-one` : name;
  window.scrollTo(0, 0);
  title(PAGES[name].name);
  PAGES[name].open({ id, query: new URLSearchParams(location.search), main, signal: page.signal, href, go, title });
}

function title(next) {
  words = spelled(next);
  document.title = `${questions ? `(${questions}) ` : ''}${words} · Sabir`;
}

function navigation() {
  const badge = h('span.count', { 'data-count': 'waiting', 'aria-label': 'open questions' });
  const theme = button('Theme', () => {
    const chosen = document.documentElement.dataset.theme;
    const isDark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = isDark ? 'light' : 'dark';
    store('localStorage', 'sabir.theme', isDark ? 'light' : 'dark');
  }, { class: 'quiet', title: 'Dark or light' });
  const logout = button('Log out', () => {
    setToken(null);
    showQuestions(0);
    show();
  }, { class: 'quiet', hidden: !token() });
  document.getElementById('nav').append(h('a.brand', { href: href('/tasks') }, 'Sabir'),
    h('div.pages', Object.entries(PAGES).map(([name, { name: label, key }]) => h('a', { href: href(`/${name}`), 'data-page': name },
      label, name === 'waiting' ? badge : '', h('kbd', { 'aria-hidden': 'true' }, `g ${key}`)))),
    h('div.foot', logout, theme, button('Keys', showKeys, { class: 'quiet', title: 'All keys (?)' })));
  const showQuestions = (number) => {
    questions = number;
    setText(badge, questions ? String(questions) : '');
    title(words);
  };
  onUnauthorized((why) => askForToken(why, () => {
    logout.hidden = false;
    show();
  }));
  // A title is seen in another tab, too.
  every(3000, new AbortController().signal, async () => {
    try {
      const asker = token();
      const number = (await Promise.all(GROUPS.waiting.map((state) => countTasks(state)))).reduce((sum, one) => sum + one);
      if (asker === token()) showQuestions(number);
    } catch {
      // The page that is open says what is wrong.
    }
  });
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(`${CONSOLE}/`)) return;
  event.preventDefault();
  go(link.pathname.slice(CONSOLE.length) + link.search);
});
window.addEventListener('popstate', show);
globalKeys([
  ...Object.entries(PAGES).map(([name, { name: label, key }]) => [`g ${key}`, label, () => go(`/${name}`)]),
  ['/', 'Search', () => (document.querySelector('#main [type=search]') ?? { focus: () => go('/tasks?search') }).focus()],
  ['j', 'Next row', () => moveRow(1)], ['k', 'Row before', () => moveRow(-1)], ['?', 'All keys', showKeys],
]);
listen();
navigation();
show();
setInterval(growOlder, 5000);

// Whether the server answers. When it does not, a quiet bar says so, and everybody who waits is woken when it is back.

import { announce, pause, setText } from './dom.js';

let lost = null;
const waiting = new Set();

/** Somebody got no answer. One loop asks until there is one. */
export function noteLost(ask) {
  if (lost) return;
  lost = (async () => {
    // A restart that takes half a second is nothing to show.
    const timer = setTimeout(() => show('reconnecting, nothing is lost'), 600);
    for (let tries = 0; ; tries += 1) {
      await pause(Math.min(250 * 1.5 ** tries, 3000));
      try {
        if ((await ask()).ok) break;
      } catch {
        // Not yet.
      }
    }
    clearTimeout(timer);
    lost = null;
    show('');
    for (const wake of [...waiting]) wake();
  })();
}

/** Resolves when the server answers, at once if it does. */
export const back = () => lost ?? Promise.resolve();

/** Calls `act` now, then again and again, until the signal ends it. Slower while nobody looks, at once after an interruption. */
export async function every(ms, signal, act) {
  while (!signal.aborted) {
    await back();
    if (signal.aborted) return;
    // Without a token there is nothing to ask for.
    if (!document.querySelector('dialog.login')) await act();
    await new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        waiting.delete(wake);
        document.removeEventListener('visibilitychange', seen);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const seen = () => document.hidden || wake();
      const timer = setTimeout(wake, document.hidden ? ms * 5 : ms);
      waiting.add(wake);
      document.addEventListener('visibilitychange', seen);
      signal.addEventListener('abort', wake);
    });
  }
}

function show(words) {
  const bar = document.getElementById('bar');
  if (bar.textContent && !words) announce('Connected again');
  setText(bar, words);
}

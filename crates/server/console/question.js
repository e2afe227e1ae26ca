// A question as a card: what is asked, what for, and the answers as buttons.

import { send, textOf } from './api.js';
import { announce, button, fill, h } from './dom.js';
import { ago, count } from './format.js';
import { renderText } from './parts.js';

/** An input with more members than this is shown as one text. */
const MOST_MEMBERS = 200;
/** A text with more than this says how long it is, and scrolls. */
const LONG_TEXT = 2000;
const LONG_LINES = 20;
/** For so long (ms) a card takes no answer after it has come or moved: what one wants to press may just have been another question. */
const HOLD = 500;

/** What a status message asks; the question of an agent that only uses words has no id and no choices. */
export function questionOf(message) {
  const data = (message?.parts ?? []).map((part) => part.data).find((value) => value?.kind === 'question');
  const isPermission = data?.type === 'permission';
  // Whatever a program puts into its data, here it becomes words.
  const words = (value) => (value === undefined || value === null || typeof value === 'string' ? value : JSON.stringify(value));
  const listed = Array.isArray(data?.choices) ? data.choices.filter((choice) => choice?.id) : [];
  const choices = listed.map((choice) => ({ id: choice.id, name: words(choice.name ?? choice.id), kind: words(choice.kind ?? choice.id) }));
  return {
    id: data?.questionId, text: textOf(message) || words(data?.question) || '', tool: words(data?.tool), input: data?.input, approver: words(data?.approver), isPermission,
    choices: choices.length || !isPermission ? choices : [
      { id: 'yes', name: 'Allow', kind: 'allow_once', approved: true }, { id: 'no', name: 'Deny', kind: 'reject_once', approved: false },
    ],
  };
}

const YES = /^(allow|yes|approve)(_|$)/;
const NO = /^(reject|deny|no)(_|$)/;
/** The choice that a plain yes or no means: once rather than for ever, as the server reads it (`choice_of`). */
function choiceOf(choices, kinds) {
  const all = choices.filter(({ kind }) => kinds.test(kind));
  return all.find(({ kind }) => kind.endsWith('_once')) ?? all.find(({ kind }) => !kind.endsWith('_always')) ?? all[0];
}

/**
 * The card. `where` says whose question it is: `{ task, context, agent, time, title }`. `onAnswered` is called when the server
 * has taken the answer.
 */
export function questionCard(message, where, onAnswered = () => {}) {
  const question = questionOf(message);
  const error = h('p.error-line', { role: 'alert' });
  const field = h('textarea', {
    rows: 1, 'aria-label': question.isPermission ? 'Deny, and say why' : 'Answer in your own words',
    placeholder: question.isPermission ? 'Deny, and say why…' : question.choices.length ? 'Or in other words…' : 'Your answer…',
  });
  const answer = async (parts, words) => {
    if (card.classList.contains('busy')) return;
    card.classList.add('busy');
    for (const control of controls.querySelectorAll('button, textarea')) control.disabled = true;
    fill(error);
    try {
      await send(parts, where);
      fill(controls, h('p.answered', 'Answered: ', h('b', words)));
      field.value = '';
      announce('Answer sent');
      onAnswered(words);
    } catch (failure) {
      fill(error, `Not answered: ${failure.message}.`);
      for (const control of controls.querySelectorAll('button, textarea')) control.disabled = false;
    } finally {
      card.classList.remove('busy');
    }
  };
  const named = question.id ? { questionId: question.id } : null;
  const choose = (choice) => {
    if (isHeld()) return;
    const data = choice.approved === undefined ? { ...named, optionId: choice.id } : { ...named, approved: choice.approved };
    return answer([{ data }], choice.name);
  };
  const say = () => {
    const words = field.value.trim();
    if (!words) return field.focus();
    const data = question.isPermission ? { ...named, approved: false, reason: words } : named;
    const parts = question.isPermission ? [{ data }] : [{ text: words }, ...(data ? [{ data }] : [])];
    return answer(parts, words);
  };
  const controls = h('div.controls',
    question.choices.length > 0 && h('div.choices', { role: 'group', 'aria-label': 'Answers' }, question.choices.map((choice) =>
      button(choice.name, () => choose(choice), { class: choice === choiceOf(question.choices, YES) ? 'primary' : NO.test(choice.kind) ? 'danger' : '' }))),
    h('form.words', { onsubmit: (event) => {
      event.preventDefault();
      if (!isHeld()) say();
    } }, field, h('button', { type: 'submit' }, question.isPermission ? 'Deny' : 'Answer')));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      // What was written here was written for this question, so it is not held.
      say();
    }
  });
  let held;
  const isHeld = () => controls.hasAttribute('aria-disabled');
  const card = h('article.question', { 'data-row': true, tabindex: -1, 'aria-label': `Question: ${question.text.slice(0, 120)}` },
    where.title && h('header', h('span.kind', question.isPermission ? 'Permission' : where.isAuth ? 'Sign-in needed' : 'Question'), where.title, ago(where.time)),
    renderText(question.text),
    question.tool && h('p.tool', 'Tool ', h('code', question.tool)),
    question.input !== undefined && h('div.input', wholeInput(question.input)),
    question.approver && h('p.muted', 'Only callers with the scope ', h('code', question.approver), ' may answer.'),
    controls, error);
  // Keys of the page end here.
  card.yes = () => pick(YES);
  card.no = () => pick(NO);
  const pick = (kinds) => {
    const choice = choiceOf(question.choices, kinds);
    if (choice && controls.querySelector('.choices')) choose(choice);
    else field.focus();
  };
  card.questionId = question.id ?? message?.messageId;
  card.isWritten = () => field.value !== '' && !card.classList.contains('busy');
  card.isBusy = () => field.value !== '' || card.classList.contains('busy');
  card.hold = () => {
    controls.setAttribute('aria-disabled', 'true');
    clearTimeout(held);
    held = setTimeout(() => controls.removeAttribute('aria-disabled'), HOLD);
  };
  return card;
}

/**
 * What a place with cards needs: cards that come or move are held, and the keys of the page that answer. A key answers the card in
 * focus or the one pointed at, whichever was later. Where there is none, the first press only takes a card into focus.
 */
export function watchCards(place, signal) {
  const options = { signal, passive: true };
  let chosen = null;
  let pointer = '';
  const choose = (card) => {
    chosen?.classList.remove('chosen');
    card?.classList.add('chosen');
    chosen = card;
  };
  place.addEventListener('focusin', (event) => choose(event.target.closest('.question')), options);
  document.addEventListener('pointermove', (event) => {
    const now = `${event.screenX} ${event.screenY}`;
    const card = event.target.closest?.('.question');
    // A card that moves under a pointer at rest was not pointed at.
    if (pointer && now !== pointer && card && place.contains(card) && card !== chosen) choose(card);
    pointer = now;
  }, options);
  const hold = () => {
    for (const card of place.querySelectorAll('.question')) {
      const top = Math.round(card.getBoundingClientRect().top + window.scrollY);
      if (card.top !== top) card.hold();
      card.top = top;
    }
  };
  const sizes = new ResizeObserver(hold);
  sizes.observe(place);
  signal.addEventListener('abort', () => sizes.disconnect(), { once: true });
  const press = (act) => {
    if (chosen?.isConnected) return act(chosen);
    const first = place.querySelector('.question');
    if (!first) return;
    first.focus();
    first.hold();
    announce('Press again to answer this question');
  };
  return { hold, keys: [['y', 'Answer yes', () => press((card) => card.yes())], ['n', 'Answer no', () => press((card) => card.no())]] };
}

/** All of what a tool would get, never folded: one answers for all of it. */
function wholeInput(input) {
  const members = typeof input === 'object' && input && !Array.isArray(input) ? Object.entries(input) : [];
  if (!members.length || members.length > MOST_MEMBERS) return wholeText(input);
  return h('dl', members.map(([name, value]) => [h('dt', name), h('dd', wholeText(value))]));
}

function wholeText(value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  const lines = text.split('\n').length;
  const isLong = text.length > LONG_TEXT || lines > LONG_LINES;
  return [isLong && h('p.muted', `${count(text.length)} characters in ${count(lines)} lines, all of them in this box:`),
    h('pre.code.whole', { tabindex: isLong ? 0 : null }, text)];
}

// A question as a card: what is asked, what for, and the answers as buttons.

import { send, textOf } from './api.js';
import { announce, button, fill, h } from './dom.js';
import { ago } from './format.js';
import { folded, renderText } from './parts.js';

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

const isYes = (choice) => /^allow|^yes|^approve/.test(choice.kind);
const isNo = (choice) => /^reject|^deny|^no/.test(choice.kind);

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
      button(choice.name, () => choose(choice), { class: choice === question.choices.find(isYes) ? 'primary' : isNo(choice) ? 'danger' : '' }))),
    h('form.words', { onsubmit: (event) => {
      event.preventDefault();
      say();
    } }, field, h('button', { type: 'submit' }, question.isPermission ? 'Deny' : 'Answer')));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      say();
    }
  });
  const card = h('article.question', { 'data-row': true, tabindex: -1, 'aria-label': `Question: ${question.text.slice(0, 120)}` },
    where.title && h('header', h('span.kind', question.isPermission ? 'Permission' : where.isAuth ? 'Sign-in needed' : 'Question'), where.title, ago(where.time)),
    renderText(question.text),
    question.tool && h('p.tool', 'Tool ', h('code', question.tool)),
    question.input !== undefined && h('div.input', wholeInput(question.input)),
    question.approver && h('p.muted', 'Only callers with the scope ', h('code', question.approver), ' may answer.'),
    controls, error);
  // Keys of the page end here: y and n take the first answer of their kind.
  card.yes = () => pick(isYes);
  card.no = () => pick(isNo);
  const pick = (fits) => {
    const choice = question.choices.find(fits);
    if (choice && controls.querySelector('.choices')) choose(choice);
    else field.focus();
  };
  card.questionId = question.id ?? message?.messageId;
  card.isBusy = () => field.value !== '' || card.classList.contains('busy');
  return card;
}

/** Nothing of what a tool would get is hidden: one answers for all of it. */
function wholeInput(input) {
  if (typeof input === 'object' && input && !Array.isArray(input)) {
    return h('dl', Object.entries(input).map(([name, value]) => [h('dt', name),
      h('dd', h('pre.code', typeof value === 'string' ? value : JSON.stringify(value, null, 2)))]));
  }
  return folded(input, 'input');
}

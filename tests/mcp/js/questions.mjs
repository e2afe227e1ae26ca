// What agents ask: as elicitations where the client can show them, as text where it cannot.

import assert from 'node:assert/strict';

import { dataOf, inState, user, words } from './stage.mjs';

const ALLOWED = /The folder \*\*build\*\* is gone/;
const DENIED = /It was not allowed/;

export async function aQuestionIsAnsweredByTheUserOfTheClient(stage) {
  const elicit = user('accept', { answer: 'Monday' });
  const result = await (await stage.client({ elicit })).call('ask_agent', { message: 'ask which day?' });
  assert.deepEqual(elicit.questions.map((question) => question.message), ['which day?']);
  assert.equal(elicit.questions[0].requestedSchema.properties.answer.type, 'string');
  assert.equal(words(result), 'echo: Monday');
}

export async function aPermissionIsGivenByAChoice(stage) {
  const elicit = user('accept', { choice: 'allow' });
  const result = await (await stage.client({ elicit })).call('ask_asks', { message: 'clean up' });
  assert.equal(elicit.questions.length, 1, 'asked once');
  assert.match(elicit.questions[0].message, /rm -rf build/);
  const { choice } = elicit.questions[0].requestedSchema.properties;
  assert.deepEqual(choice.oneOf, [{ const: 'allow', title: 'Allow' }, { const: 'reject', title: 'Reject' }]);
  assert.match(words(result), ALLOWED);
}

export async function aPermissionIsDeniedByAChoiceOrByDeclining(stage) {
  for (const elicit of [user('accept', { choice: 'reject' }), user('decline')]) {
    const result = await (await stage.client({ elicit })).call('ask_asks', { message: 'clean up' });
    assert.match(words(result), DENIED);
    assert.equal(elicit.questions.length, 1, 'asked once');
  }
}

export async function aPermissionThatIsCancelledStaysOpen(stage) {
  const client = await stage.client({ elicit: user('cancel') });
  const asked = dataOf(await client.call('ask_asks', { message: 'clean up', wait_seconds: 3 }), 'input-required');
  assert.deepEqual(asked.question.choices.map((choice) => choice.id), ['allow', 'reject']);
  const answer = { task: asked.task, question: asked.question.id, answer: 'yes' };
  assert.match(words(await (await stage.client()).call('answer_task', answer)), ALLOWED);
}

export async function aQuestionThatIsCancelledOrDeclinedComesBackAsText(stage) {
  for (const action of ['cancel', 'decline']) {
    const elicit = user(action);
    const client = await stage.client({ elicit });
    const result = await client.call('ask_agent', { message: 'ask which day?', wait_seconds: 2 });
    const { task } = dataOf(result, 'input-required');
    assert.match(words(result), /which day\?[^]*answer_task/);
    assert.equal(elicit.questions.length, 1, 'asked once');
    assert.equal(words(await client.call('answer_task', { task, answer: 'Monday' })), 'echo: Monday');
  }
}

export async function aClientWithoutElicitationGetsTheQuestionAsText(stage) {
  const client = await stage.client();
  const result = await client.call('ask_agent', { message: 'ask which day?' });
  const { task, question } = dataOf(result, 'input-required');
  assert(!result.isError && question.text === 'which day?' && words(result).includes(question.id), words(result));
  assert.equal(words(await client.call('answer_task', { task, question: question.id, answer: 'Monday' })), 'echo: Monday');
}

export async function aPermissionIsAnsweredInWords(stage) {
  const client = await stage.client();
  for (const [answer, expected] of [['yes', ALLOWED], ['Reject', DENIED], ['whatever you like', DENIED]]) {
    const { task } = dataOf(await client.call('ask_asks', { message: 'clean up' }), 'input-required');
    assert.match(words(await client.call('answer_task', { task, answer })), expected, answer);
  }
}

export async function aTaskThatWaitsCanBeCancelled(stage) {
  const client = await stage.client();
  const { task } = dataOf(await client.call('ask_asks', { message: 'clean up' }), 'input-required');
  await client.call('cancel_task', { task });
  await inState(client, task, 'canceled');
}

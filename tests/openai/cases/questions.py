"""Questions of the agent in a conversation."""

import re

from openai import BadRequestError

from stage import ALLOWED, DENIED, chat, failure, say


def _id_in(words):
    return re.findall(r'q\d+-[0-9a-f]{16}', words)[-1]


def a_yes_in_the_same_context_allows(stage):
    client = stage.client()
    question = say(client, 'clean up', 'yes-1', 'asks')
    assert 'rm -rf build' in question and 'Answer yes or no' in question, question
    assert say(client, 'yes', 'yes-1', 'asks') == ALLOWED


def a_no_and_any_other_text_deny(stage):
    client = stage.client()
    for number, answer in enumerate(('no', 'deny', 'why do you ask?', 'yes, but leave the folder')):
        context = f'no-{number}'
        say(client, 'clean up', context, 'asks')
        assert say(client, answer, context, 'asks') == DENIED, answer


def an_answer_may_name_its_question(stage):
    client = stage.client()
    id = _id_in(say(client, 'clean up', 'named', 'asks'))
    assert say(client, f'{id} yes', 'named', 'asks') == ALLOWED
    error = failure(BadRequestError, lambda: say(client, f'yes {id}', 'named', 'asks'))
    assert error.code == 'question_closed', error


def a_streamed_question_is_answered_in_a_stream(stage):
    client = stage.client()

    def streamed(text):
        chunks = chat(client, text, 'streamed', 'asks', stream=True)
        return ''.join(chunk.choices[0].delta.content or '' for chunk in chunks if chunk.choices)

    assert 'rm -rf build' in streamed('clean up')
    assert streamed('yes') == ALLOWED


def without_a_context_a_permission_is_refused(stage):
    client = stage.client()
    before = stage.server.number_of_tasks()
    said = say(client, 'clean up', model='asks')
    assert 'X-Sabir-Context' in said and said.endswith(DENIED), said
    # A yes has nothing to answer: it is a message like every other.
    assert say(client, 'yes') == 'echo: yes'
    assert stage.server.number_of_tasks() == before + 2


def words_answer_a_question_for_words(stage):
    client = stage.client()
    question = say(client, 'ask Which day?', 'day')
    assert question.startswith('Which day?') and _id_in(question), question
    assert say(client, 'Monday', 'day').startswith('echo: Monday')


def without_a_context_the_reply_says_how_to_answer(stage):
    client = stage.client()
    said = say(client, 'ask Which day?')
    context = re.search(r'X-Sabir-Context: ([0-9a-zA-Z-]+)', said)[1]
    assert say(client, 'Monday', context).startswith('echo: Monday')

"""What agents ask: as elicitations where the client can show them, as text where it cannot."""

from stage import User, data_of, in_state, words

ALLOWED, DENIED = 'Done. The folder **build** is gone.', 'It was not allowed.'


def _property(params):
    """The one property of a form."""
    schema = params.requested_schema
    assert schema['type'] == 'object' and len(schema['properties']) == 1, schema
    [(name, property)] = schema['properties'].items()
    assert schema['required'] == [name], schema
    return name, property


async def a_question_is_answered_by_the_user_of_the_client(stage):
    user = User('accept', {'answer': 'Monday'})
    async with stage.client(elicit=user) as client:
        result = await client.call_tool('ask_agent', {'message': 'ask which day?'})
    assert [question.message for question in user.questions] == ['which day?'], user.questions
    name, property = _property(user.questions[0])
    assert name == 'answer' and property['type'] == 'string', property
    assert words(result) == 'echo: Monday', result
    data_of(result, 'completed')


async def a_permission_is_given_by_a_choice(stage):
    user = User('accept', {'choice': 'allow'})
    async with stage.client(elicit=user) as client:
        result = await client.call_tool('ask_asks', {'message': 'clean up'})
    assert len(user.questions) == 1 and 'rm -rf build' in user.questions[0].message, user.questions
    name, property = _property(user.questions[0])
    assert name == 'choice' and property['type'] == 'string', property
    assert [choice['const'] for choice in property['oneOf']] == ['allow', 'reject'], property
    assert [choice['title'] for choice in property['oneOf']] == ['Allow', 'Reject'], property
    data_of(result, 'completed')
    assert ALLOWED in words(result), result


async def a_permission_is_denied_by_a_choice_or_by_declining(stage):
    for user in (User('accept', {'choice': 'reject'}), User('decline')):
        async with stage.client(elicit=user) as client:
            result = await client.call_tool('ask_asks', {'message': 'clean up'})
        assert len(user.questions) == 1, user.questions
        assert DENIED in words(result) and ALLOWED not in words(result), result


async def a_permission_that_is_cancelled_stays_open(stage):
    user = User('cancel')
    async with stage.client(elicit=user) as client:
        result = await client.call_tool('ask_asks', {'message': 'clean up', 'wait_seconds': 3})
        task = data_of(result, 'input-required')
        assert task['question']['type'] == 'permission' and task['next'] == 'answer_task', task
        assert [choice['id'] for choice in task['question']['choices']] == ['allow', 'reject'], task
    async with stage.client() as client:
        answer = {'task': task['task'], 'question': task['question']['id'], 'answer': 'yes'}
        result = await client.call_tool('answer_task', answer)
        assert ALLOWED in words(result), result


async def a_question_that_is_cancelled_or_declined_comes_back_as_text(stage):
    for action in ('cancel', 'decline'):
        user = User(action)
        async with stage.client(elicit=user) as client:
            result = await client.call_tool('ask_agent', {'message': 'ask which day?', 'wait_seconds': 2})
            assert len(user.questions) == 1, user.questions
            task = data_of(result, 'input-required')
            assert 'which day?' in words(result) and 'answer_task' in words(result), words(result)
            result = await client.call_tool('answer_task', {'task': task['task'], 'answer': 'Monday'})
            assert words(result) == 'echo: Monday', f'{action}: {result}'


async def a_client_without_elicitation_gets_the_question_as_text(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'ask which day?'})
        task = data_of(result, 'input-required')
        assert not result.is_error and 'which day?' in words(result), result
        assert task['question']['text'] == 'which day?' and task['question']['id'] in words(result), task
        answer = {'task': task['task'], 'question': task['question']['id'], 'answer': 'Monday'}
        result = await client.call_tool('answer_task', answer)
        assert words(result) == 'echo: Monday' and data_of(result, 'completed')['task'] == task['task'], result
        # The same question is not answered twice.
        result = await client.call_tool('answer_task', answer)
        assert result.is_error, result


async def a_permission_is_answered_in_words(stage):
    for answer, expected in [('yes', ALLOWED), ('Allow', ALLOWED), ('no', DENIED), ('whatever you like', DENIED)]:
        async with stage.client() as client:
            result = await client.call_tool('ask_asks', {'message': 'clean up'})
            task = data_of(result, 'input-required')
            assert 'Allow (allow)' in words(result) and 'Reject (reject)' in words(result), words(result)
            result = await client.call_tool('answer_task', {'task': task['task'], 'answer': answer})
            assert expected in words(result), f'{answer}: {result}'


async def an_answer_to_another_question_changes_nothing(stage):
    async with stage.client() as client:
        for tool in ('ask_asks', 'ask_agent'):
            other = data_of(await client.call_tool(tool, {'message': 'ask which day?'}), 'input-required')['question']['id']
            for question in (other, 'q999'):
                task = data_of(await client.call_tool(tool, {'message': 'ask which day?'}), 'input-required')
                answer = {'task': task['task'], 'question': question, 'answer': 'yes'}
                result = await client.call_tool('answer_task', answer)
                assert result.is_error, f'{tool} {question}: {words(result)}'
                assert (await in_state(client, task['task'], 'input-required'))['question'] == task['question']


async def a_task_that_waits_can_be_cancelled(stage):
    async with stage.client() as client:
        for tool in ('ask_agent', 'ask_asks'):
            task = data_of(await client.call_tool(tool, {'message': 'ask which day?'}), 'input-required')['task']
            await client.call_tool('cancel_task', {'task': task})
            await in_state(client, task, 'canceled')

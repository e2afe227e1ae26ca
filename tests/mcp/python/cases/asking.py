"""Agents are asked and answer, at once or later."""

from stage import begin, data, data_of, in_state, started, words


async def an_agent_answers(stage):
    async with stage.client() as client:
        for tool, arguments in [('ask_agent', {}), ('ask_agent', {'agent': 'demo'}), ('ask_demo', {})]:
            result = await client.call_tool(tool, {'message': 'hello', **arguments})
            assert not result.is_error and words(result) == 'echo: hello', result
            task = data_of(result, 'completed')
            assert task['agent'] == 'demo' and task['answer'] == 'echo: hello' and task['task'] and task['context'], task
            assert 'next' not in task, task


async def progress_grows_while_an_agent_works(stage):
    async with stage.client() as client:
        for message, expected, fewest in [('slow 3 done', 'echo: slow 3 done', 1), ('stream 20 100', 'chunk 20', 10)]:
            numbers, over = [], []

            async def progress(number, _total, _message):
                numbers.append(number)
                over.append(call.done())

            call = started(client.call_tool('ask_agent', {'message': message}, progress_callback=progress))
            result = await call
            assert expected in words(result), result
            assert len(numbers) >= fewest and not any(over), f'{message}: {numbers}, {over}'
            assert all(one < next for one, next in zip(numbers, numbers[1:])), f'{message}: {numbers}'


async def a_wait_of_no_seconds_returns_the_id_of_the_task(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'slow 2 later', 'wait_seconds': 0})
        task = data(result)
        assert task['state'] in ('submitted', 'working') and task['next'] == 'wait_task', task
        assert task['task'] in words(result) and 'wait_task' in words(result), words(result)
        result = await client.call_tool('wait_task', {'task': task['task']})
        assert words(result) == 'echo: slow 2 later', result
        assert data_of(result, 'completed')['task'] == task['task']
        # Waiting for what is over, and looking at it, shows the same.
        for tool in ('wait_task', 'get_task'):
            assert words(await client.call_tool(tool, {'task': task['task']})) == 'echo: slow 2 later', tool


async def a_short_wait_ends_and_the_task_goes_on(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'slow 4 on', 'wait_seconds': 1})
        task = data_of(result, 'working')
        assert 'still' in words(result), words(result)
        assert (await in_state(client, task['task'], 'completed'))['answer'] == 'echo: slow 4 on'


async def a_context_remembers(stage):
    async with stage.client() as client:
        first = data_of(await client.call_tool('ask_agent', {'message': 'the first words'}), 'completed')
        result = await client.call_tool('ask_agent', {'message': 'history', 'context': first['context']})
        second = data_of(result, 'completed')
        assert second['context'] == first['context'] and second['task'] != first['task'], (first, second)
        assert 'the first words' in words(result), result


async def a_repeated_call_with_one_key_makes_one_task(stage):
    key = f'key-{stage.era}'
    before = stage.server.number_of_tasks()
    async with stage.client() as client:
        first = await begin(client, 'slow 2 once', idempotency_key=key)
        result = await client.call_tool('ask_agent', {'message': 'slow 2 once', 'idempotency_key': key})
        assert data_of(result, 'completed')['task'] == first, result
        assert words(result) == 'echo: slow 2 once', result
        again = await client.call_tool('ask_agent', {'message': 'slow 2 once', 'idempotency_key': key})
        assert data_of(again, 'completed')['task'] == first, again
    assert stage.server.number_of_tasks() == before + 1


async def a_failed_task_is_an_error_that_gives_the_reason(stage):
    async with stage.client() as client:
        for message, state in [('fail the disk is full', 'failed'), ('reject the disk is full', 'rejected')]:
            result = await client.call_tool('ask_agent', {'message': message})
            assert result.is_error and 'the disk is full' in words(result), result
            data_of(result, state)


async def cancel_task_stops_it(stage):
    async with stage.client() as client:
        task = await begin(client, 'slow 50 never')
        result = await client.call_tool('cancel_task', {'task': task})
        # The agent may need a moment to stop.
        assert data(result)['task'] == task, result
        assert (await in_state(client, task, 'canceled'))['task'] == task
        # A second one changes nothing, and one that is over cannot be stopped.
        result = await client.call_tool('cancel_task', {'task': task})
        assert data_of(result, 'canceled')['task'] == task

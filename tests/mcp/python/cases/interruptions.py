"""A call that ends early stops waiting; its task goes on."""

import anyio

from stage import PATIENCE, data, failure, in_state, started, until


async def _task_of(client, key, message):
    """The id of the task that a call with this key has begun: a repeated one joins it."""
    return data(await client.call_tool('ask_agent', {'message': message, 'idempotency_key': key, 'wait_seconds': 0}))['task']


async def a_call_that_times_out_changes_nothing(stage):
    key, message = f'timeout-{stage.era}', 'slow 4 after all'
    before = stage.server.number_of_tasks()
    async with stage.client() as client:
        call = client.call_tool('ask_agent', {'message': message, 'idempotency_key': key}, read_timeout_seconds=1.5)
        error = await failure(call)
        assert 'imed out' in str(error), repr(error)
        # The client goes on, and so does the task.
        task = await _task_of(client, key, message)
        assert (await in_state(client, task, 'completed'))['answer'] == f'echo: {message}'
    assert stage.server.number_of_tasks() == before + 1


async def a_call_that_is_cancelled_changes_nothing(stage):
    key, message = f'cancelled-{stage.era}', 'stream 40 100'
    before = stage.server.number_of_tasks()
    async with stage.client() as client:
        working = anyio.Event()

        async def progress(*_):
            working.set()

        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def call():
                    arguments = {'message': message, 'idempotency_key': key}
                    await client.call_tool('ask_agent', arguments, progress_callback=progress)

                group.start_soon(call)
                with anyio.fail_after(PATIENCE):
                    await working.wait()
                scope.cancel()
        task = await _task_of(client, key, message)
        assert (await in_state(client, task, 'completed'))['answer'].endswith('chunk 40\n')
    assert stage.server.number_of_tasks() == before + 1


async def a_client_that_goes_away_changes_nothing(stage):
    key, message = f'gone-{stage.era}', 'stream 40 100'
    before = stage.server.number_of_tasks()
    working = anyio.Event()

    async def progress(*_):
        working.set()

    async def host():
        async with stage.client() as client:
            await client.call_tool('ask_agent', {'message': message, 'idempotency_key': key}, progress_callback=progress)

    gone = started(host())
    with anyio.fail_after(PATIENCE):
        await working.wait()
    gone.cancel()

    async def is_gone():
        return gone.done()

    await until(is_gone, 'the client is gone')
    async with stage.client() as client:
        task = await _task_of(client, key, message)
        assert (await in_state(client, task, 'completed'))['answer'].endswith('chunk 40\n')
    assert stage.server.number_of_tasks() == before + 1


async def several_calls_of_one_client_wait_at_the_same_time(stage):
    async with stage.client() as client:
        answers = {}

        async def ask(number):
            result = await client.call_tool('ask_agent', {'message': f'slow 1 number {number}'})
            answers[number] = data(result)['answer']

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(ask, number)
    assert answers == {number: f'echo: slow 1 number {number}' for number in range(8)}, answers

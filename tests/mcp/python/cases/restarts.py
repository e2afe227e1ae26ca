"""The server is killed while a call waits."""

import anyio

from stage import PATIENCE, User, data, data_of, failure, in_state, started, words


async def a_task_outlives_a_kill_of_the_server(stage):
    server = stage.own_server()
    async with stage.client(server) as client:
        finished = data_of(await client.call_tool('ask_agent', {'message': 'hello'}), 'completed')
        asking = data_of(await client.call_tool('ask_agent', {'message': 'ask which day?'}), 'input-required')
        arguments = {'message': 'stream 400 100', 'idempotency_key': 'on'}
        working = anyio.Event()

        async def progress(*_):
            working.set()

        call = started(client.call_tool('ask_agent', arguments, progress_callback=progress))
        with anyio.fail_after(PATIENCE):
            await working.wait()
        # The same key is the same task.
        task = data(await client.call_tool('ask_agent', {**arguments, 'wait_seconds': 0}))['task']
        server.kill()
        with anyio.fail_after(PATIENCE):
            error = await failure(call)
        assert not isinstance(error, AssertionError), error
        server.start()
        # The same client goes on: a session of the legacy era is in its id.
        result = await client.call_tool('get_task', {'task': task})
        assert data(result)['task'] == task, result
        assert words(await client.call_tool('get_task', {'task': finished['task']})) == 'echo: hello'
        result = await client.call_tool('answer_task', {'task': asking['task'], 'answer': 'Monday'})
        assert words(result) == 'echo: Monday', result
    async with stage.client(server) as client:
        assert data(await client.call_tool('get_task', {'task': task}))['task'] == task
        await client.call_tool('cancel_task', {'task': task})
        await in_state(client, task, 'canceled', 'failed', 'completed')


async def a_question_is_answered_after_a_kill_of_the_server(stage):
    server = stage.own_server()

    class Slow(User):
        """Answers once the server that asked is gone, and another has taken its place."""

        async def __call__(self, context, params):
            server.kill()
            server.start()
            return await super().__call__(context, params)

    user = Slow('accept', {'answer': 'Monday'})
    async with stage.client(server, elicit=user) as client:
        call = client.call_tool('ask_agent', {'message': 'ask which day?', 'idempotency_key': 'one'})
        if stage.is_modern:
            assert words(await call) == 'echo: Monday'
        else:
            # The call was waiting at the server that is gone; the answer has come all the same.
            await failure(call)
    async with stage.client(server) as client:
        result = await client.call_tool('ask_agent', {'message': 'ask which day?', 'idempotency_key': 'one'})
        assert words(result) == 'echo: Monday', result
    assert len(user.questions) == 1 and server.number_of_tasks() == 1

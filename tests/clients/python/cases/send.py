"""Sending and getting: one message in, one settled task or message out."""

import asyncio

from plain import Message, Part, Task, equal, holds, settled, text


async def a_blocking_send_returns_the_completed_task(peer):
    task = await peer.send('hello')
    holds('a task', isinstance(task, Task), task)
    equal('state', task.state, 'completed')
    equal('artifacts', [(each.name, each.parts) for each in task.artifacts], [('result', [text('echo: hello')])])
    equal('history', [(each.role, each.text) for each in task.history], [('user', 'hello')])
    holds('ids', task.id and task.context, task)


async def get_returns_the_task_that_send_returned(peer):
    task = await peer.send('hello')
    equal('the task', await peer.get(task.id), task)


async def parts_of_every_kind_come_back_as_they_were_in_order(peer):
    others = [
        Part('raw', bytes(range(256)), 'blob.bin', 'application/octet-stream'),
        Part('url', 'https://example.com/a%20b.png?x=1&y=2', 'a b.png', 'image/png'),
        Part('data', {'n': 1, 'x': 2.5, 'big': 9007199254740991, 'tiny': -1e-7, 'deep': {'list': [[], {}, 'ü\n"\\']}}),
        Part('data', {'yes': True, 'no': None, '': 'empty key'}, metadata={'lang': 'da', 'rank': {'of': [1, 2]}}),
    ]
    task = await peer.send([text('look at'), *others[:2], text('these'), *others[2:]])
    equal('state', task.state, 'completed')
    equal('parts', task.artifacts[0].parts, [text('echo: look at these'), *others])
    equal('parts on get', (await peer.get(task.id)).artifacts[0].parts, [text('echo: look at these'), *others])


async def a_message_without_text_comes_back_without_text(peer):
    part = Part('data', {'only': 'data'})
    task = await peer.send([part])
    equal('parts', task.artifacts[0].parts, [part])


async def an_immediate_send_answers_before_the_work_is_done(peer):
    task = await peer.start('slow 1 hi')
    holds('state', task.state in ('submitted', 'working'), task.state)
    task = await settled(peer, task.id)
    equal('state', task.state, 'completed')
    holds('text', task.artifacts[0].text.startswith('echo: ') and task.artifacts[0].text.endswith('hi'), task.artifacts)


async def many_sends_at_once_each_get_their_own_answer(peer):
    words = [f'word {i}' for i in range(20)]
    tasks = await asyncio.gather(*(peer.send(word) for word in words))
    equal('texts', [task.artifacts[0].text for task in tasks], [f'echo: {word}' for word in words])
    equal('different ids', len({task.id for task in tasks}), len(words))


async def an_agent_may_answer_with_a_message_instead_of_a_task(peer):
    answer = await peer.send('message hi there')
    holds('a message', isinstance(answer, Message), answer)
    equal('it', (answer.role, answer.text, answer.task), ('agent', 'hi there', None))
    holds('ids', answer.id and answer.context, answer)


async def a_failed_task_says_why(peer):
    task = await peer.send('fail boom')
    equal('state and message', (task.state, task.says), ('failed', 'boom'))


async def a_rejected_task_says_why(peer):
    task = await peer.send('reject no')
    equal('state and message', (task.state, task.says), ('rejected', 'no'))


async def an_agent_may_answer_with_a_file(peer):
    await _answers_with(peer, 'file', Part('raw', b'Hello file', 'output.txt', 'text/plain'))


async def an_agent_may_answer_with_a_url(peer):
    await _answers_with(peer, 'url', Part('url', 'https://example.com/output.txt', 'output.txt', 'text/plain'))


async def an_agent_may_answer_with_data(peer):
    await _answers_with(peer, 'data', Part('data', {'key': 'value', 'count': 42}))


async def _answers_with(peer, word, part):
    task = await peer.send(word)
    equal('state', task.state, 'completed')
    equal('parts', [each.parts for each in task.artifacts], [[part]])

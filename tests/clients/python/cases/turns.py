"""Tasks of several turns: the agent asks, the client answers on the same task."""

from plain import Task, equal, holds


async def an_answer_to_a_question_completes_the_same_task(peer):
    asked = await peer.send('ask Which day?')
    equal('asked', (asked.state, asked.says), ('input-required', 'Which day?'))
    task = await peer.send('Friday', task=asked.id)
    equal('the task', (task.id, task.context, task.state), (asked.id, asked.context, 'completed'))
    equal('text', task.artifacts[-1].text, 'echo: Friday')


async def an_answer_may_name_the_context_too(peer):
    asked = await peer.send('ask Which day?')
    task = await peer.send('Friday', task=asked.id, context=asked.context)
    equal('the task', (task.id, task.state), (asked.id, 'completed'))


async def an_answer_may_come_by_stream(peer):
    asked = await peer.send('ask Which day?')
    frames = [frame async for frame in peer.stream('Friday', task=asked.id)]
    holds('the task first', isinstance(frames[0], Task), frames[0])
    equal('whose', frames[0].id, asked.id)
    equal('end', (frames[-1].task, frames[-1].state), (asked.id, 'completed'))
    equal('text', (await peer.get(asked.id)).artifacts[-1].text, 'echo: Friday')


async def the_history_holds_question_and_answer(peer):
    asked = await peer.send('ask Which day?')
    task = await peer.send('Friday', task=asked.id)
    conversation = [('user', 'ask Which day?'), ('agent', 'Which day?'), ('user', 'Friday')]
    equal('history', [(each.role, each.text) for each in task.history], conversation)


async def history_length_cuts_the_older_messages(peer):
    asked = await peer.send('ask Which day?')
    await peer.send('Friday', task=asked.id)
    conversation = ['ask Which day?', 'Which day?', 'Friday']
    for length in (1, 2, 3, 9):
        task = await peer.get(asked.id, history=length)
        equal(f'the last {length}', [each.text for each in task.history], conversation[-length:])


async def a_task_may_wait_for_credentials(peer):
    task = await peer.send('auth token please')
    equal('state and message', (task.state, task.says), ('auth-required', 'token please'))
    task = await peer.send('here', task=task.id)
    equal('then', (task.state, task.artifacts[-1].text), ('completed', 'echo: here'))

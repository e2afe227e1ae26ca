"""Requests that make no sense, and the error each of them gets."""

from plain import INVALID_PARAMS, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, equal, holds


async def getting_an_unknown_task_is_refused(peer):
    message, data = await peer.refused(TASK_NOT_FOUND, peer.get('no-such-task'))
    if (peer.version, peer.binding) == ('0.3', 'grpc'):
        # There is nothing but the text, so that names the task.
        equal('message', message, 'task no-such-task does not exist')
        return
    equal('message', message, 'Task not found')
    equal('data', data, {'taskId': 'no-such-task'})


async def a_message_to_a_finished_task_is_refused(peer):
    task = await peer.send('hello')
    await peer.refused(UNSUPPORTED_OPERATION, peer.send('more', task=task.id))


async def a_message_to_an_unknown_task_is_refused(peer):
    await peer.refused(TASK_NOT_FOUND, peer.send('hello', task='no-such-task'))


async def a_context_other_than_that_of_the_task_is_refused(peer):
    task = await peer.send('ask Which day?')
    await peer.refused(INVALID_PARAMS, peer.send('Friday', task=task.id, context='another'))
    equal('the task still waits', (await peer.get(task.id)).state, 'input-required')


async def a_message_without_parts_is_refused(peer):
    await peer.refused(INVALID_PARAMS, peer.send([]))


async def a_stream_to_a_finished_task_is_refused(peer):
    task = await peer.send('hello')
    await peer.refused(UNSUPPORTED_OPERATION, anext(peer.stream('more', task=task.id)))


async def a_stream_to_an_unknown_task_is_refused(peer):
    await peer.refused(TASK_NOT_FOUND, anext(peer.stream('hello', task='no-such-task')))


async def a_stream_without_parts_is_refused(peer):
    await peer.refused(INVALID_PARAMS, anext(peer.stream([])))


async def a_refusal_leaves_the_connection_usable(peer):
    await peer.refused(TASK_NOT_FOUND, peer.get('no-such-task'))
    holds('the next send', (await peer.send('hello')).state == 'completed', 'no completed task')

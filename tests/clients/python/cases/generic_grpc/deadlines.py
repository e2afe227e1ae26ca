"""A deadline ends the call. The task continues to its own end."""

import asyncio
import uuid

import grpc

from cases.generic_grpc.a2a import ONE, VERSIONS, settled, text_of
from plain import chunks, equal


async def a_deadline_ends_a_send_and_not_its_task(peer):
    context = str(uuid.uuid4())
    for version in VERSIONS:
        request = version.send('slow 1 hi', contextId=context)
        await _ends_at_its_deadline(peer.unary(version.service, 'SendMessage', request, timeout=0.3))
    filters = {'contextId': context, 'status': 'TASK_STATE_COMPLETED', 'includeArtifacts': True}
    while (listed := await peer.unary(ONE.service, 'ListTasks', filters)).get('totalSize', 0) < len(VERSIONS):
        await asyncio.sleep(0.05)
    for task in listed['tasks']:
        equal('text', text_of(task['artifacts'][0]), 'echo: slow 1 hi')


async def a_deadline_ends_a_stream_and_not_its_task(peer):
    for version in VERSIONS:
        request = version.send('stream 20 50')
        stream = await peer.stream(version.service, 'SendStreamingMessage', request, timeout=0.4)
        task = (await stream.next())['task']
        await _ends_at_its_deadline(stream.rest())
        ended = await settled(peer, version, task['id'])
        equal('text', text_of(ended['artifacts'][0]), chunks(20))


async def a_deadline_that_is_far_away_changes_nothing(peer):
    for version in VERSIONS:
        task = (await peer.unary(version.service, 'SendMessage', version.send('hello'), timeout=30))['task']
        equal('state', task['status']['state'], 'TASK_STATE_COMPLETED')


async def _ends_at_its_deadline(call):
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        equal('code', error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        return
    raise AssertionError(f'it ended before its deadline: {answer!r}')

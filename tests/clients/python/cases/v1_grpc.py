"""What the SDK of 1.0 has over gRPC and nowhere else."""

import asyncio

from a2a.client import A2AClientTimeoutError, ClientCallContext
from a2a.types import TaskState

from plain import equal

ONLY_OVER = 'grpc'


async def a_time_limit_ends_the_call_and_not_the_task(peer):
    context = 'of-a-call-that-ends-early'
    request = peer.request('slow 1 hi', context=context)
    limit = ClientCallContext(timeout=0.3)
    try:
        async for answer in peer.client.send_message(request, context=limit):
            raise AssertionError(f'an answer came in time: {answer!r}')
    except A2AClientTimeoutError:
        pass
    while not (tasks := (await peer.list(context_id=context, status=TaskState.TASK_STATE_COMPLETED)).tasks):
        await asyncio.sleep(0.05)
    equal('the task', len(tasks), 1)

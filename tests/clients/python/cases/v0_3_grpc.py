"""What the SDK of 0.3 has over gRPC and nowhere else: protobuf cannot tell a caller who said nothing from one who said no."""

import grpc

from a2a import types
from a2a.grpc import a2a_pb2

from kind_json import write_message
from plain import equal, holds, settled

ONLY_OVER = 'grpc'


async def a_client_without_a_configuration_waits_for_the_task(peer):
    # The SDK's client writes `blocking` for callers who say nothing.
    answers = [answer async for answer in peer.client.send_message(write_message('slow 0.3 hi', None, None))]
    equal('state', answers[0][0].status.state.value, 'completed')


async def a_client_that_polls_gets_the_task_at_once(peer):
    # What the SDK sends is an empty configuration.
    answers = [answer async for answer in peer.polling_client().send_message(write_message('slow 1 hi', None, None))]
    task = answers[0][0]
    holds('state', task.status.state.value in ('submitted', 'working'), task)
    equal('then', (await settled(peer, task.id)).state, 'completed')


async def a_transport_without_a_configuration_does_not_wait(peer):
    # It sends the same bytes as a client that polls, so the server cannot tell them apart.
    task = await peer.client._transport.send_message(types.MessageSendParams(message=write_message('slow 1 hi', None, None)))
    holds('state', task.status.state.value in ('submitted', 'working'), task)


async def metadata_that_names_another_version_is_refused(peer):
    stub = peer.client._transport.stub
    try:
        await stub.GetTask(a2a_pb2.GetTaskRequest(name='tasks/no-such-task'), metadata=[('a2a-version', '1.0')])
    except grpc.aio.AioRpcError as error:
        holds('the error', error.details().startswith('VersionNotSupportedError: '), error.details())
        return
    raise AssertionError('an answer came')

"""Calls that must fail, and what their errors hold."""

import grpc

from grpc_status import rpc_status

from plain import equal


async def refused(peer, service, method, request, code, **options):
    """The call must fail with this code of gRPC; None is any. Returns the error."""
    if method in ('SendStreamingMessage', 'SubscribeToTask', 'TaskSubscription'):
        error = await fails((await peer.stream(service, method, request, **options)).rest())
    else:
        error = await fails(peer.unary(service, method, request, **options))
    if code:
        equal(f'{method} ({error.details()})', error.code().name, code)
    return error


def detail(error, message):
    """The detail of this type."""
    for each in status(error).details:
        if each.Unpack(message):
            return message
    raise AssertionError(f'no {message.DESCRIPTOR.name} in {status(error)}')


def status(error):
    # The library checks that code and text are those of the trailers.
    return rpc_status.from_call(error)


async def fails(call):
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError(f'an answer: {answer!r}')

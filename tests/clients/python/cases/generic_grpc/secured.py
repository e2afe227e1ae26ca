"""The server that asks for credentials, over TLS: health is for everybody, the rest is not."""

from google.rpc import error_details_pb2

from cases.generic_grpc.a2a import ONE, THREE, VERSIONS
from cases.generic_grpc.refusals import detail, refused
from cases.generic_grpc.health import HEALTH
from plain import equal, holds
from reflection_peer import V0_3, V1


async def callers_are_known_by_metadata(server):
    for name in ('alice', 'robot'):
        metadata = server.metadata(name)
        for version in VERSIONS:
            answer = await server.peer.unary(version.service, 'SendMessage', version.send('hello'), metadata=metadata)
            equal(f'state for {name}', answer['task']['status']['state'], 'TASK_STATE_COMPLETED')


async def a_caller_without_a_credential_is_unauthenticated(server):
    # The descriptors are asked for with a credential.
    for service in (V1, V0_3):
        await server.peer.describe(service, server.metadata('alice'))
    error = await refused(server.peer, V1, 'GetTask', ONE.task('no-such-task'), 'UNAUTHENTICATED')
    equal('domain', detail(error, error_details_pb2.ErrorInfo()).domain, 'a2a-protocol.org')
    await refused(server.peer, V0_3, 'GetTask', THREE.task('no-such-task'), 'UNAUTHENTICATED')
    await refused(server.peer, V1, 'SendStreamingMessage', ONE.send('hello'), 'UNAUTHENTICATED')


async def a_caller_who_may_only_read_is_denied_to_send(server):
    metadata = server.metadata('reader')
    await refused(server.peer, V1, 'SendMessage', ONE.send('hello'), 'PERMISSION_DENIED', metadata=metadata)
    await refused(server.peer, V0_3, 'SendMessage', THREE.send('hello'), 'PERMISSION_DENIED', metadata=metadata)
    await refused(server.peer, V1, 'GetTask', ONE.task('no-such-task'), 'NOT_FOUND', metadata=metadata)


async def the_extended_card_is_for_callers_with_credentials(server):
    metadata = server.metadata('alice')
    for service, method in ((V1, 'GetExtendedAgentCard'), (V0_3, 'GetAgentCard')):
        card = await server.peer.unary(service, method, metadata=metadata)
        holds('a card with schemes', card['name'] and card['securitySchemes'], card)
        await refused(server.peer, service, method, {}, 'UNAUTHENTICATED')


async def health_is_for_everybody(server):
    await server.peer.describe(HEALTH, server.metadata('alice'))
    equal('health', await server.peer.unary(HEALTH, 'Check', {}), {'status': 'SERVING'})

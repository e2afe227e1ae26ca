"""The health service, which load balancers ask: for the whole server, and for each service."""

from cases.generic_grpc.a2a import ONE
from cases.generic_grpc.refusals import refused
from own_server import serving
from plain import equal
from reflection_peer import V0_3, V1

HEALTH = 'grpc.health.v1.Health'


async def check_tells_of_the_server_and_its_services(peer):
    for service in ('', V1, V0_3):
        equal(service, await peer.unary(HEALTH, 'Check', {'service': service}), {'status': 'SERVING'})
    await refused(peer, HEALTH, 'Check', {'service': 'no.such.Service'}, 'NOT_FOUND')


async def list_tells_of_all(peer):
    statuses = (await peer.unary(HEALTH, 'List'))['statuses']
    equal('statuses', statuses, {service: {'status': 'SERVING'} for service in ('', V1, V0_3)})


async def watch_tells_at_once(peer):
    for service, status in (('', 'SERVING'), (V1, 'SERVING'), ('no.such.Service', 'SERVICE_UNKNOWN')):
        stream = await peer.stream(HEALTH, 'Watch', {'service': service})
        equal(service, await stream.next(), {'status': status})
        stream.cut()


async def watch_tells_that_the_server_stops(peer):
    async with serving(peer, '', ['']) as server:
        [other] = server.peers
        stream = await other.stream(HEALTH, 'Watch', {})
        equal('at first', await stream.next(), {'status': 'SERVING'})
        # The server waits for it.
        await other.unary(V1, 'SendMessage', ONE.start('slow 2 hi'))
        server.stop()
        equal('then', await stream.rest(), [{'status': 'NOT_SERVING'}])

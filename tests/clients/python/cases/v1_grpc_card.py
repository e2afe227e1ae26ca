"""The extended card over gRPC."""

from plain import equal

ONLY_OVER = 'grpc'


async def the_extended_card_is_the_one_of_http_json(server):
    for name in ('alice', 'robot'):
        over_grpc = await (await server.peer(name)).extended_card()
        over_http = await (await server.peer(name, binding='http_json')).extended_card()
        equal(f'the card for {name}', over_grpc, over_http)

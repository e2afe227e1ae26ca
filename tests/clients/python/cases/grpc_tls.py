"""TLS of a gRPC channel, which is the caller's own: the card may come over HTTPS that is trusted, and the channel not."""

ONLY_OVER = 'grpc'


async def a_channel_that_does_not_trust_the_certificate_does_not_connect(server):
    peer = await server.peer('alice')
    peer.channels.authority = None
    await _is_unavailable(peer)


async def a_channel_without_tls_does_not_connect(server):
    peer = await server.peer('alice')
    peer.channels.is_secure = False
    await _is_unavailable(peer)


async def _is_unavailable(peer):
    peer.open_channel_again()
    await peer.shut_out(503, peer.send('hello'))

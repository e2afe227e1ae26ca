"""What 0.3 alone says, or says otherwise than both 0.2 and 1.0."""

from plain import NO_EXTENDED_CARD, equal


async def the_extended_card_is_refused(peer):
    if peer.binding == 'grpc':
        # gRPC of 0.3 has one call for both cards, and clients that have nothing else fetch the public one with it.
        equal('name', (await peer.extended_card()).name, peer.card().name)
        return
    await peer.refused(NO_EXTENDED_CARD, peer.extended_card())


async def the_card_is_also_where_older_versions_had_it(peer):
    equal('card', await peer.card_at('/.well-known/agent.json'), peer.sdk_card)

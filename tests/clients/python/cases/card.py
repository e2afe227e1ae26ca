"""The card: how a client finds out whom it talks to, and where."""

from plain import equal, holds


async def the_card_tells_who_serves_and_what_it_can(peer):
    card = peer.card()
    holds('a name', card.name, card)
    holds('a version', card.version, card)
    holds('skills', card.skills, card)
    equal('streaming', card.streaming, True)


async def the_card_lists_this_binding_and_version(peer):
    interfaces = peer.card().interfaces
    holds('the interfaces', (peer.wire_binding, peer.version) in interfaces, interfaces)


async def the_sdk_picks_its_own_version_from_the_card(peer):
    holds('the transport', peer.uses_its_own_version(), type(peer.client._transport))

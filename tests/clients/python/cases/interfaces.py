"""The card lists bindings and versions, and the SDK picks from that list. Clients before 0.3 know one address only."""

from plain import holds


async def the_card_lists_this_binding_and_version(peer):
    interfaces = peer.card().interfaces
    holds('the interfaces', (peer.wire_binding, peer.version) in interfaces, interfaces)


async def the_sdk_picks_its_own_version_from_the_card(peer):
    holds('the transport', peer.uses_its_own_version(), type(peer.client._transport))

"""The card: how a client finds out whom it talks to, and where."""

from plain import equal, holds


async def the_card_tells_who_serves_and_what_it_can(peer):
    card = peer.card()
    holds('a name', card.name, card)
    holds('a version', card.version, card)
    holds('skills', card.skills, card)
    equal('streaming', card.streaming, True)

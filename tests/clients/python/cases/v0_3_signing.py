"""Signed cards of 0.3: those of Sabir are verified by the SDK, and those of the SDK by Sabir."""

from a2a.types import AgentExtension
from a2a.utils.signing import InvalidSignaturesError, create_agent_card_signer, create_signature_verifier

from plain import equal, holds
from signed_card import keys, keys_by_id, published, sabir_verifies, serving


async def the_sdk_verifies_the_card_of_sabir(peer):
    holds('signatures', peer.sdk_card.signatures, peer.sdk_card)
    keys_of_sabir = await keys_by_id(peer.http, peer.sdk_card.signatures)
    create_signature_verifier(keys_of_sabir, ['ES256', 'EdDSA'])(peer.sdk_card)


async def the_sdk_refuses_a_card_that_was_changed(peer):
    keys_of_sabir = await keys_by_id(peer.http, peer.sdk_card.signatures)
    changed = peer.sdk_card.model_copy(update={'url': peer.sdk_card.url + 'x'})
    try:
        create_signature_verifier(keys_of_sabir, ['ES256', 'EdDSA'])(changed)
    except InvalidSignaturesError:
        return
    raise AssertionError('the changed card was accepted')


async def sabir_verifies_cards_of_the_sdk(peer):
    for alg, key in keys():
        documents = {}
        with serving(documents) as url:
            extension = AgentExtension(uri='https://example.com/e', params={'é': [1, 'x', None, True], 'empty': []})
            capabilities = peer.sdk_card.capabilities.model_copy(update={'extensions': [extension]})
            update = {'signatures': None, 'description': 'piers 1 to 9 – é 😀', 'capabilities': capabilities}
            card = peer.sdk_card.model_copy(update=update)
            create_agent_card_signer(key, {'alg': alg, 'kid': 'k', 'jku': f'{url}/keys', 'typ': 'JOSE'})(card)
            documents['/.well-known/agent-card.json'] = card.model_dump(mode='json', by_alias=True, exclude_none=True)
            documents['/keys'] = published(alg, key)
            code, printed = await sabir_verifies(url)
            equal(f'{alg}, the exit code of {printed}', code, 0)
            equal('what is covered', printed['signatures'][0]['covers'], '0.3')

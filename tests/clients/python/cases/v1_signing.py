"""Signed cards: those of Sabir are verified by the SDK, and those of the SDK by Sabir."""

from a2a.types import AgentCard
from a2a.utils.signing import InvalidSignaturesError, create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToDict

from plain import equal, holds
from signed_card import PARAMETERS, keys, keys_by_id, published, sabir_verifies, serving


async def the_sdk_verifies_the_card_of_sabir(peer):
    holds('signatures', peer.sdk_card.signatures, peer.sdk_card)
    keys_of_sabir = await keys_by_id(peer.http, peer.sdk_card.signatures)
    create_signature_verifier(keys_of_sabir, ['ES256', 'EdDSA'])(peer.sdk_card)


async def the_sdk_refuses_a_card_that_was_changed(peer):
    keys_of_sabir = await keys_by_id(peer.http, peer.sdk_card.signatures)
    changed = AgentCard()
    changed.CopyFrom(peer.sdk_card)
    changed.supported_interfaces[0].url += 'x'
    try:
        create_signature_verifier(keys_of_sabir, ['ES256', 'EdDSA'])(changed)
    except InvalidSignaturesError:
        return
    raise AssertionError('the changed card was accepted')


async def sabir_verifies_cards_of_the_sdk(peer):
    for alg, key in keys():
        documents = {}
        with serving(documents) as url:
            card = AgentCard()
            card.CopyFrom(peer.sdk_card)
            del card.signatures[:]
            card.description = 'piers 1 to 9 – é 😀'
            card.skills.add(id='bare', name='Bare')
            parameters = {**PARAMETERS, 'numbers': [n for n in PARAMETERS['numbers'] if abs(n) < 1e16]}
            card.capabilities.extensions.add(uri='https://example.com/e', params=parameters)
            card.security_schemes['bearer'].http_auth_security_scheme.scheme = 'Bearer'
            card.security_schemes['mtls'].mtls_security_scheme.SetInParent()
            card.security_requirements.add().schemes['bearer'].SetInParent()
            header = {'alg': alg, 'kid': 'k', 'jku': f'{url}/keys', 'typ': 'JOSE'}
            create_agent_card_signer(key, header, {'note': 'unprotected'})(card)
            documents['/.well-known/agent-card.json'] = MessageToDict(card)
            documents['/keys'] = published(alg, key)
            code, printed = await sabir_verifies(url)
            equal(f'{alg}, the exit code of {printed}', code, 0)
            equal('what is covered', printed['signatures'][0]['covers'], '1.0')
            documents['/.well-known/agent-card.json']['name'] = 'another'
            code, printed = await sabir_verifies(url)
            equal('the exit code for a changed card', code, 1)
            equal('the verdict', printed['signatures'][0]['verdict'], 'invalid')

"""What 0.2 has otherwise than later versions: one address, an older place for its cards, and modes in every send."""

from a2a.client import A2AClientHTTPError
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, EXTENDED_AGENT_CARD_PATH

from plain import TASK_NOT_CANCELABLE, artifact_texts, chunks, equal, holds

# Where JSON-RPC answers. A client of 0.2 may be given one of these instead of a card.
MOUNTS = ('', '/', '/a2a', '/a2a/jsonrpc', '/v1/a2a')


async def the_card_is_the_same_at_the_old_place_and_at_the_new_one(peer):
    equal('where the SDK looks', AGENT_CARD_WELL_KNOWN_PATH, '/.well-known/agent.json')
    equal('card', await peer.card_at(peer.url, '/.well-known/agent-card.json'), peer.sdk_card)


async def the_card_gives_the_address_of_json_rpc(peer):
    card = peer.sdk_card
    equal('address', (card.url, card.preferred_transport), (f'{peer.url}/a2a/jsonrpc', 'JSONRPC'))
    listed = [(each.transport, each.url) for each in card.additional_interfaces]
    holds('listed too', ('JSONRPC', card.url) in listed, listed)
    holds('a version of this generation', card.protocol_version.startswith('0.'), card.protocol_version)


async def the_card_promises_no_extended_one(peer):
    equal('promise', peer.sdk_card.supports_authenticated_extended_card, False)


async def the_extended_card_is_not_found_beside_the_address_of_the_card(peer):
    parent, _, _ = peer.sdk_card.url.rpartition('/')
    await _no_extended_card(peer, parent)


async def the_extended_card_is_not_found_below_the_server(peer):
    await _no_extended_card(peer, peer.url)


async def a_finished_task_cannot_be_canceled_at_the_address_of_the_card(peer):
    # Of all mounts this is the one where the answer has to be the one of the specification.
    task = await peer.send('hello')
    other = peer.at('/a2a/jsonrpc')
    await other.refused(TASK_NOT_CANCELABLE, other.cancel(task.id))
    equal('left as it was', await other.get(task.id), task)


async def a_client_without_a_card_is_served_at_every_mount(peer):
    for mount in MOUNTS:
        other = peer.at(mount)
        task = await other.send('hello')
        equal(f'at {mount!r}', (task.state, task.artifacts[0].text), ('completed', 'echo: hello'))
        frames = [frame async for frame in other.stream('stream 3 0')]
        equal(f'stream at {mount!r}', (artifact_texts(frames), frames[-1].state), ([chunks(3)], 'completed'))


async def a_number_as_the_id_of_a_request_comes_back_as_that_number(peer):
    for number in (1, 2**53 - 1):
        equal('state', (await peer.send('hello', number=number)).state, 'completed')


async def accepted_output_modes_may_be_types_words_or_none(peer):
    for modes in (['text/plain'], ['application/json', 'text/plain'], ['text'], ['text', 'file', 'data'], []):
        task = await peer.send('hello', modes=modes)
        equal(f'with {modes}', (task.state, task.artifacts[0].text), ('completed', 'echo: hello'))
        frames = [frame async for frame in peer.stream('stream 2 0', modes=modes)]
        equal(f'stream with {modes}', (artifact_texts(frames), frames[-1].state), ([chunks(2)], 'completed'))


async def a_send_that_says_nothing_of_blocking_waits(peer):
    for what, options in (('only modes', {'blocking': None}), ('no configuration', {'modes': None})):
        task = await peer.send('slow 0.3 hi', **options)
        equal(what, task.state, 'completed')


async def _no_extended_card(peer, base):
    """Plain HTTP, so the refusal is a status and no envelope."""
    answer = await peer.card_at(base, EXTENDED_AGENT_CARD_PATH)
    holds('an HTTP error', isinstance(answer, A2AClientHTTPError), answer)
    equal(f'the status ({answer})', answer.status_code, 404)
    body = answer.__cause__.response.text
    holds('no envelope', '"jsonrpc"' not in body, body)

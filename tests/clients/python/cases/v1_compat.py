"""The 1.x SDK has a 0.3 client inside, for cards that list nothing newer. It spells 0.3 in its own way: an explicit
version header, and over HTTP+JSON `request` and snake case in the body."""

from a2a.compat.v0_3 import types as v0_3

from plain import TASK_NOT_FOUND, Chunk, Part, Refusal, Webhook, artifact_texts, chunks, equal, holds, text
from receiver import receiving


async def the_older_client_inside_the_sdk_is_served(peer):
    old = older(peer)
    holds('the transport', not old.uses_its_own_version(), type(old.client._transport))
    task = await old.send('hello')
    equal('task', (task.state, task.artifacts[0].text), ('completed', 'echo: hello'))
    equal('get', (await old.get(task.id)).artifacts[0].text, 'echo: hello')


async def the_older_client_inside_the_sdk_can_stream(peer):
    frames = [frame async for frame in older(peer).stream('stream 5 20')]
    equal('chunks', sum(isinstance(frame, Chunk) for frame in frames), 5)
    equal('text', artifact_texts(frames), [chunks(5)])
    equal('end', frames[-1].state, 'completed')


async def the_older_client_inside_the_sdk_can_watch_and_cancel(peer):
    old = older(peer)
    task = await old.start('slow 30')
    frames = []
    async for frame in old.subscribe(task.id):
        if not frames:
            equal('canceled', (await old.cancel(task.id)).state, 'canceled')
        frames.append(frame)
    equal('end', frames[-1].state, 'canceled')


async def the_older_client_inside_the_sdk_is_told_of_an_unknown_task(peer):
    # Over HTTP+JSON it looks for a `type` that 0.3 never defined, and takes a 404 without one for an unknown path.
    unknown = TASK_NOT_FOUND
    if peer.binding == 'http_json':
        unknown = Refusal('MethodNotFoundError', -32601, 404, 'NOT_FOUND')
    old = older(peer)
    await old.refused(unknown, old.get('no-such-task'))


async def the_older_client_inside_the_sdk_can_bring_and_set_webhooks(peer):
    old = older(peer)
    async with receiving() as receiver:
        task = await old.send('hello', webhook=Webhook(None, 'first', receiver.url('/first'), 't'))
        equal('in 0.3', (await _ends(receiver)).id, task.id)
        equal('set', (await old.set_push(task.id, 'second', receiver.url('/second'), 't')).id, 'second')
        equal('in 0.3', (await _ends(receiver)).id, task.id)
        equal('get', (await old.get_push(task.id, 'second')).url, receiver.url('/second'))


async def a_task_made_in_one_version_is_seen_in_the_other(peer):
    old = older(peer)
    parts = [
        Part('url', 'https://example.com/a.png', 'a.png', 'image/png'),
        Part('data', {'a': [1, {'b': None}]}, metadata={'lang': 'da'}),
        # 0.3 knows objects only; the two sides of the SDK agree on how to wrap the rest.
        Part('data', [1, 'two']),
    ]
    for maker, reader in ((peer, old), (old, peer)):
        made = await maker.send([text('hello'), *parts])
        seen = await reader.get(made.id)
        equal('the task', (seen.id, seen.context, seen.state), (made.id, made.context, 'completed'))
        equal('parts', seen.artifacts[0].parts, [text('echo: hello'), *parts])
        equal('the message in the history', seen.history[0].parts, [text('hello'), *parts])


async def _ends(receiver):
    """The task of the next delivery that tells of an end, in the SDK's types of 0.3."""
    while True:
        task = v0_3.Task.model_validate_json((await receiver.deliveries.get()).body)
        if task.status.state == v0_3.TaskState.completed:
            return task


def older(peer):
    """The same peer, shown only the card's 0.3 interfaces."""
    card = type(peer.sdk_card)()
    card.CopyFrom(peer.sdk_card)
    kept = [each for each in peer.sdk_card.supported_interfaces if each.protocol_version.startswith('0.3')]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    return type(peer)(peer.http, peer.channels, card, peer.binding, peer.caller)

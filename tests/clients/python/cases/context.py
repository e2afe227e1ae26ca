"""Contexts: tasks that belong together."""

from plain import equal, holds


async def tasks_of_one_context_share_its_id(peer):
    first = await peer.send('alpha')
    second = await peer.send('beta', context=first.context)
    equal('context', second.context, first.context)
    holds('another task', second.id != first.id, second.id)


async def tasks_without_a_context_get_one_each(peer):
    first, second = await peer.send('alpha'), await peer.send('beta')
    holds('contexts', first.context and first.context != second.context, (first.context, second.context))


async def a_context_id_chosen_by_the_client_is_kept(peer):
    context = f'made-by-{peer.version}-{peer.binding}'
    equal('context', (await peer.send('hello', context=context)).context, context)


async def an_agent_sees_the_earlier_exchanges_of_its_context_only(peer):
    await peer.send('stranger')
    first = await peer.send('alpha one')
    await peer.send('beta two', context=first.context)
    seen = (await peer.send('history', context=first.context)).artifacts[0].text
    lines = seen.splitlines()
    texts = [word for line in lines for word in ('alpha one', 'beta two') if line.endswith(word)]
    equal(f'order in {seen!r}', list(dict.fromkeys(texts)), ['alpha one', 'beta two'])
    holds('no other context', 'stranger' not in seen, seen)

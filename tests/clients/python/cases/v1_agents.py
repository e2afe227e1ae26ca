"""Several agents on one server, each with a card of its own. Over HTTP their paths tell them apart; over gRPC there are none, so
the card names a tenant, and the SDK sends it along by itself."""

from own_server import serving
from plain import TASK_NOT_FOUND, artifact_texts, chunks, equal

TWO_AGENTS = """
[[agent]]
id = "left"
kind = "demo"
default = true

[[agent]]
id = "right"
kind = "demo"
"""


async def the_card_of_an_agent_leads_to_that_agent(peer):
    async with _two_agents(peer) as server:
        left, right, root = server.peers
        task = await right.send('hello')
        equal('task', (task.state, (await right.get(task.id)).id), ('completed', task.id))
        equal('in its list', [each.id for each in (await right.list()).tasks], [task.id])
        equal('in the list of the other', list((await left.list()).tasks), [])
        equal('in the list of the server', [each.id for each in (await root.list()).tasks], [task.id])
        await left.refused(TASK_NOT_FOUND, left.get(task.id))
        await left.refused(TASK_NOT_FOUND, left.list_push(task.id))
        equal('at the root', (await root.get(task.id)).id, task.id)


async def streams_and_cancels_reach_the_agent_of_the_card(peer):
    async with _two_agents(peer) as server:
        left, right, _ = server.peers
        frames = [frame async for frame in right.stream('stream 3 0')]
        equal('stream', artifact_texts(frames), [chunks(3)])
        task = await right.start('slow 30')
        await left.refused(TASK_NOT_FOUND, left.cancel(task.id))
        await left.refused(TASK_NOT_FOUND, anext(left.subscribe(task.id)))
        equal('state', (await right.cancel(task.id)).state, 'canceled')


def _two_agents(peer):
    """A server whose peers have the cards of the agents, and its own."""
    return serving(peer, TWO_AGENTS, ['/agents/left', '/agents/right', ''])

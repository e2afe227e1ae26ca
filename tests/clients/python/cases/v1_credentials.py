"""Credentials where 1.0 has something of its own: lists, and the 0.3 client inside the SDK."""

from cases.v1_compat import older
from plain import artifact_texts, chunks, equal


async def callers_list_their_own_tasks(server):
    alice, robot = await server.peer('alice'), await server.peer('robot')
    task = await alice.send('hello')
    filters = {'context_id': task.context}
    equal('for its owner', [each.id for each in (await alice.list(**filters)).tasks], [task.id])
    equal('for another', list((await robot.list(**filters)).tasks), [])
    equal('how many', (await robot.list(**filters)).total_size, 0)


async def a_list_without_a_credential_is_401(server):
    nobody = await server.nobody()
    await nobody.shut_out(401, nobody.list())


async def the_older_client_inside_the_sdk_shows_the_credential_too(server):
    for name in ('alice', 'robot'):
        old = older(await server.peer(name))
        task = await old.send('hello')
        equal(f'task of {name}', (task.state, (await old.get(task.id)).id), ('completed', task.id))
        frames = [frame async for frame in old.stream('stream 3 0')]
        equal('stream', artifact_texts(frames), [chunks(3)])

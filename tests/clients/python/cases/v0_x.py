"""What 0.2 and 0.3 say otherwise than 1.0."""

from plain import Part, Status, Task, equal


async def watching_a_finished_task_shows_it_and_ends(peer):
    task = await peer.send('hello')
    frames = [frame async for frame in peer.subscribe(task.id)]
    equal('frames', [type(frame) for frame in frames], [Task, Status])
    equal('snapshot', frames[0], task)
    equal('end', (frames[1].state, frames[1].final), ('completed', True))


async def history_length_zero_means_none_in_json_rpc_and_unset_elsewhere(peer):
    # HTTP+JSON is ProtoJSON here, and gRPC is protobuf, where zero and nothing are the same.
    task = await peer.send('hello')
    wanted = [] if peer.binding == 'jsonrpc' else ['hello']
    equal('history', [each.text for each in (await peer.get(task.id, history=0)).history], wanted)


async def long_numbers_are_carried_as_they_are(peer):
    # Over HTTP+JSON and gRPC the SDK itself makes doubles of them.
    number = 12345678901234567 if peer.binding == 'jsonrpc' else 9007199254740991
    part = Part('data', {'serial': number})
    equal('parts', (await peer.send([part])).artifacts[0].parts, [part])

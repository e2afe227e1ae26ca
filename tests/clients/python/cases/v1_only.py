"""What 1.0 says otherwise than older versions, or alone."""

from plain import INVALID_PARAMS, UNSUPPORTED_OPERATION, Part, equal


async def watching_a_finished_task_is_refused(peer):
    task = await peer.send('hello')
    await peer.refused(UNSUPPORTED_OPERATION, anext(peer.subscribe(task.id)))


async def the_extended_card_is_refused(peer):
    await peer.refused(UNSUPPORTED_OPERATION, peer.extended_card())


async def history_length_zero_leaves_the_history_out(peer):
    task = await peer.send('hello', history=0)
    equal('on send', task.history, [])
    equal('on get', (await peer.get(task.id, history=0)).history, [])
    equal('kept all the same', len((await peer.get(task.id)).history), 1)


async def a_negative_history_length_is_refused(peer):
    task = await peer.send('hello')
    await peer.refused(INVALID_PARAMS, peer.get(task.id, history=-1))
    await peer.refused(INVALID_PARAMS, peer.send('hello', history=-1))
    await peer.refused(INVALID_PARAMS, peer.list(history_length=-1))


async def a_page_size_out_of_bounds_is_refused(peer):
    for size in (0, -1, 101, 1000):
        await peer.refused(INVALID_PARAMS, peer.list(page_size=size))


async def a_made_up_page_token_is_refused(peer):
    await peer.refused(INVALID_PARAMS, peer.list(page_token='made up'))


async def data_of_any_json_type_comes_back(peer):
    parts = [Part('data', value) for value in ([1, 'two', [3.5]], 'words', 7, False, None)]
    task = await peer.send(parts)
    equal('parts', task.artifacts[0].parts, parts)


async def media_type_and_file_name_are_kept_on_every_kind_of_part(peer):
    part = Part('data', {'a': 1}, media='application/vnd.example+json')
    task = await peer.send([Part('text', '# hi', media='text/markdown'), part])
    equal('parts', task.artifacts[0].parts[1:], [part])
    equal('the message in the history', task.history[0].parts[0].media, 'text/markdown')

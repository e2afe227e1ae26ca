"""A stream that was cut is resumed without loss: the initial metadata gives the number of its first message, later ones count up,
and `last-event-id` says what the client has."""

from cases.generic_grpc.a2a import VERSIONS, settled, streamed_text
from plain import chunks, equal, holds


async def a_cut_stream_is_resumed_where_it_broke(peer):
    for version in VERSIONS:
        frames, last = await _cut_after(peer, version, 'stream 20 30', 5)
        id = frames[0]['task']['id']
        resumed = await _resume(peer, version, id, last)
        equal('the next number', await resumed.first_event_id(), last + 1)
        frames += await resumed.rest()
        equal(f'text in {version.service}', streamed_text(frames), chunks(20))
        await _is_whole(peer, version, id, frames)


async def a_stream_is_resumed_after_the_end_of_the_task(peer):
    for version in VERSIONS:
        frames, last = await _cut_after(peer, version, 'stream 10 10', 3)
        id = frames[0]['task']['id']
        await settled(peer, version, id)
        frames += await (await _resume(peer, version, id, last)).rest()
        equal(f'text in {version.service}', streamed_text(frames), chunks(10))
        await _is_whole(peer, version, id, frames)


async def a_resumed_stream_can_be_cut_and_resumed_again(peer):
    for version in VERSIONS:
        frames, last = await _cut_after(peer, version, 'stream 12 20', 2)
        id = frames[0]['task']['id']
        while True:
            stream = await _resume(peer, version, id, last)
            number = await stream.first_event_id()
            more = [frame for frame in [await stream.next(), await stream.next()] if frame]
            stream.cut()
            equal('number', number, last + 1)
            frames += more
            last += len(more)
            if len(more) < 2 or 'statusUpdate' in more[-1]:
                break
        await _is_whole(peer, version, id, frames)


async def a_stream_of_one_version_is_resumed_in_the_other(peer):
    one, three = VERSIONS
    for first, second in ((one, three), (three, one)):
        frames, last = await _cut_after(peer, first, 'stream 10 20', 4)
        frames += await (await _resume(peer, second, frames[0]['task']['id'], last)).rest()
        equal('text', streamed_text(frames), chunks(10))


async def a_subscription_without_a_number_begins_with_the_task(peer):
    for version in VERSIONS:
        task = (await peer.unary(version.service, 'SendMessage', version.start('stream 10 30')))['task']
        stream = await peer.stream(version.service, version.subscribe, version.task(task['id']))
        number = await stream.first_event_id()
        frames = await stream.rest()
        holds('the task first', 'task' in frames[0], frames[0])
        held = ''.join(part['text'] for each in frames[0]['task'].get('artifacts', []) for part in each['parts'])
        equal('all of it', held + streamed_text(frames), chunks(10))
        # The snapshot has the number of what it holds, so that the stream can be resumed after it.
        rest = await (await _resume(peer, version, task['id'], number)).rest()
        equal('what follows the snapshot', rest, frames[1:])


async def _cut_after(peer, version, words, count):
    """Reads so many messages of a new stream and cuts it: the messages, and the number of the last."""
    stream = await peer.stream(version.service, 'SendStreamingMessage', version.send(words))
    frames = [await stream.next() for _ in range(count)]
    first = await stream.first_event_id()
    stream.cut()
    return frames, first + count - 1


async def _resume(peer, version, id, last):
    metadata = [('last-event-id', str(last))]
    return await peer.stream(version.service, version.subscribe, version.task(id), metadata=metadata)


async def _is_whole(peer, version, id, frames):
    """What was put together is what a reader gets who was there from the beginning."""
    whole = await (await _resume(peer, version, id, 0)).rest()
    equal(f'frames of {version.service}', frames, whole)

"""Coming back to a task after the stream broke."""

import contextlib

from plain import TASK_NOT_FOUND, Chunk, Status, Task, artifact_texts, chunks, equal, holds, of_subscription, settled


async def a_dropped_stream_can_be_picked_up_without_loss_or_repetition(peer):
    task = await _dropped_in_the_middle(peer, 'stream 20 50')
    frames = [frame async for frame in peer.subscribe(task)]
    holds('a snapshot first', isinstance(frames[0], Task), frames[0])
    equal('whose', frames[0].id, task)
    holds('something left to come', any(isinstance(frame, Chunk) for frame in frames), frames)
    equal('snapshot and rest', artifact_texts(frames), [chunks(20)])
    equal('end', (type(frames[-1]), frames[-1].state), (Status, 'completed'))


async def a_dropped_stream_leaves_the_task_at_work(peer):
    task = await _dropped_in_the_middle(peer, 'stream 10 20')
    seen = await settled(peer, task)
    equal('end', (seen.state, [each.text for each in seen.artifacts]), ('completed', [chunks(10)]))


async def a_task_sent_without_a_stream_can_be_watched(peer):
    task = await peer.start('stream 10 50')
    frames = [frame async for frame in peer.subscribe(task.id)]
    equal('snapshot and rest', artifact_texts(frames), [chunks(10)])


async def two_watchers_see_the_same(peer):
    task = await peer.start('slow 0.5 stream 5 20')
    first, second = peer.subscribe(task.id), peer.subscribe(task.id)
    # Both hold their snapshot before the first chunk.
    await anext(first), await anext(second)
    seen, also_seen = [frame async for frame in first], [frame async for frame in second]
    # One of them may have come early enough to see the work begin: five chunks and the end are for both.
    equal('the same', seen[-6:], also_seen[-6:])
    equal('all of it', artifact_texts(seen), [chunks(5)])


async def watching_an_unknown_task_is_refused(peer):
    await peer.refused(of_subscription(peer, TASK_NOT_FOUND), anext(peer.subscribe('no-such-task')))


async def _dropped_in_the_middle(peer, words):
    """Reads a few chunks of a new stream, hangs up and returns the task's id."""
    seen = 0
    async with contextlib.aclosing(peer.stream(words)) as frames:
        task = await anext(frames)
        async for frame in frames:
            seen += isinstance(frame, Chunk)
            if seen == 3:
                break
    return task.id

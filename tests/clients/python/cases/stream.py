"""Streams: what is shown, in which order, and when it ends."""

from plain import Chunk, Message, Status, Task, artifact_texts, chunks, equal, holds


async def a_stream_shows_the_task_then_its_work_then_its_end(peer):
    frames = [frame async for frame in peer.stream('stream 5 20')]
    equal('frames', [type(frame) for frame in frames], [Task, Status, Chunk, Chunk, Chunk, Chunk, Chunk, Status])
    task, working, *parts, completed = frames
    equal('first', (task.state, [each.text for each in task.history]), ('submitted', ['stream 5 20']))
    equal('then', working.state, 'working')
    equal('last', completed.state, 'completed')
    equal('artifact ids', len({part.artifact.id for part in parts}), 1)
    equal('append', [part.append for part in parts], [False, True, True, True, True])
    equal('last chunk', [part.last for part in parts], [False, False, False, False, True])
    equal('text', artifact_texts(frames), [chunks(5)])
    equal('ids', {(frame.task, frame.context) for frame in frames[1:]}, {(task.id, task.context)})
    _final_marks_the_end(frames)


async def a_streamed_artifact_is_stored_as_one(peer):
    frames = [frame async for frame in peer.stream('stream 5 20')]
    task = await peer.get(frames[0].id)
    equal('artifacts', [each.text for each in task.artifacts], [chunks(5)])
    equal('artifact id', task.artifacts[0].id, frames[2].artifact.id)


async def a_stream_without_pauses_loses_nothing(peer):
    frames = [frame async for frame in peer.stream('stream 500 0')]
    equal('text', artifact_texts(frames), [chunks(500)])
    equal('end', frames[-1].state, 'completed')


async def a_stream_of_a_direct_message_is_that_message(peer):
    frames = [frame async for frame in peer.stream('message hi there')]
    equal('frames', [type(frame) for frame in frames], [Message])
    equal('it', (frames[0].role, frames[0].text, frames[0].task), ('agent', 'hi there', None))


async def a_stream_ends_by_itself_when_the_agent_asks(peer):
    frames = [frame async for frame in peer.stream('ask Which day?')]
    holds('a status at the end', isinstance(frames[-1], Status), frames)
    equal('it', (frames[-1].state, frames[-1].says), ('input-required', 'Which day?'))
    _final_marks_the_end(frames)


async def a_stream_ends_when_the_task_fails(peer):
    frames = [frame async for frame in peer.stream('fail boom')]
    equal('end', (frames[-1].state, frames[-1].says), ('failed', 'boom'))
    _final_marks_the_end(frames)


async def a_stream_ends_when_somebody_cancels_the_task(peer):
    frames = []
    async for frame in peer.stream('slow 30'):
        frames.append(frame)
        if isinstance(frame, Status) and frame.state == 'working':
            await peer.cancel(frame.task)
    equal('end', frames[-1].state, 'canceled')
    _final_marks_the_end(frames)


async def unusual_line_ends_in_a_text_survive_a_stream(peer):
    # The SDK's reader of 1.3.0 takes each of these for the end of a line, so they must be escaped in the frame.
    words = 'a\u2028b\u2029c\u0085d\u000be\r\nf\u2424'
    frames = [frame async for frame in peer.stream(words)]
    equal('text', artifact_texts(frames), [f'echo: {words}'])


def _final_marks_the_end(frames):
    """Where the version has the mark at all."""
    marks = [frame.final for frame in frames if isinstance(frame, Status) and frame.final is not None]
    equal('final', marks, [False] * (len(marks) - 1) + [True] * bool(marks))

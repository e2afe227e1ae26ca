"""The cases about `kill -9` of a front: after a restart with the same store it continues what the server behind it did.

One server cannot continue: the Python SDK 0.2 stops its agent when the stream breaks, and says for ever that the task
is working. There the `idle_timeout` of the front has to end the task.
"""

import http.client

from front import DIALECTS
from front_cases import dialect, said_by
from probes import equal

CHUNKS = 12
STREAM = f'stream {CHUNKS} 100'
WHOLE = ''.join(f'chunk {i}\n' for i in range(1, CHUNKS + 1))

SETTINGS = 'idle_timeout = "3s"'
# The version whose server stops its agent when a stream breaks.
STOPS = '0.2'
SILENT = 'timed out: nothing was heard of the agent for 3s'


def streams_continue_after_the_front_was_killed(front):
    """A stream in each dialect; after the restart another dialect resumes it."""
    streams = [BegunStream(front.client(*spoken), STREAM) for spoken in DIALECTS]
    for stream in streams:
        stream.read_chunks(2)
    latest = front.latest()
    front.kill()
    for stream in streams:
        stream.read_to_the_break()
    front.start()
    readers = [front.client(*spoken) for spoken in [*DIALECTS[1:], DIALECTS[0]]]
    for stream, reader in zip(streams, readers):
        stream.resume(reader)
        what = f'begun in {dialect(stream.client)}, resumed in {dialect(reader)}'
        end = stream.events[-1]
        if front.remote.version == STOPS:
            equal(f'{what}: the end', (end.state, said_by(end)), ('failed', [('text', SILENT)]))
            assert WHOLE.startswith(stream.text()), f'{what}: {stream.text()!r}'
            continue
        equal(f'{what}: the end', end.state, 'completed')
        equal(f'{what}: the text', stream.text(), WHOLE)
        equal(f'{what}: the numbers', stream.numbers, sorted(set(stream.numbers)))
        task = reader.get(end.task)
        equal(f'{what}: the task', (task.state, ''.join(text for _, text in task.parts)), ('completed', WHOLE))
        replay = [reader.read(frame) for frame in reader.subscribe(end.task, after='0')]
        equal(f'{what}: the replay', text_of(replay), WHOLE)
    equal('the latest message at the remote', front.latest(), latest)


def a_question_waits_for_its_answer_after_the_front_was_killed(front):
    asked = front.client('1.0', 'jsonrpc').send('ask which color')
    remote = front.latest()
    front.kill()
    front.start()
    for client in front.clients():
        task = client.get(asked.task)
        equal(dialect(client), (task.state, said_by(task)), ('input-required', [('text', 'which color')]))
    done = front.client('0.3', 'jsonrpc').send('blue', asked)
    equal('the end', done[1:5], (asked.task, asked.context, 'completed', [('text', 'echo: blue')]))
    equal('the remote task', front.latest(), remote)


def a_cancel_reaches_the_remote_task_after_the_front_was_killed(front):
    before = front.latest()
    stream = BegunStream(front.client('0.3', 'http_json'), 'stream 100000 100')
    stream.read_chunks(1)
    remote = front.next_after(before)['task']
    front.kill()
    stream.read_to_the_break()
    front.start()
    client = front.client('1.0', 'http_json')
    equal('the cancel', client.cancel(stream.task).state, 'canceled')
    # The front may cancel it before it follows it again. The time limit of the case ends this.
    while front.remote.get(remote).state != 'canceled':
        pass


def nothing_is_left_after_that(front):
    """No turn runs at the server behind it, and no task here, before and after a restart that has nothing to do."""
    # The time limit of the case ends this.
    while not front.is_idle():
        pass
    latest = front.latest()
    front.kill()
    front.start()
    client = front.client('1.0', 'jsonrpc')
    for state in ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']:
        equal(state, client.list(state), [])
    equal('the latest message at the remote', front.latest(), latest)
    done = client.send('hello')
    equal('a new task', (done.state, done.parts), ('completed', [('text', 'echo: hello')]))
    assert front.latest() != latest, 'the message did not reach the remote'
    assert front.is_idle(), 'a turn runs at the remote'


CASES = [
    streams_continue_after_the_front_was_killed,
    a_question_waits_for_its_answer_after_the_front_was_killed,
    a_cancel_reaches_the_remote_task_after_the_front_was_killed,
    nothing_is_left_after_that,
]


class BegunStream:
    """A stream that breaks, and what has been read of it."""

    def __init__(self, client, text):
        self.client = client
        self.events = []
        self.numbers = []
        self._frames = client.frames(text)
        self._take(client, next(self._frames))

    @property
    def task(self):
        return self.events[0].task

    def read_chunks(self, count):
        while self.text().count('\n') < count:
            self._take(self.client, next(self._frames))

    def read_to_the_break(self):
        """The rest that had left the front before it was killed."""
        try:
            for frame in self._frames:
                self._take(self.client, frame)
        except (http.client.HTTPException, ConnectionError):
            pass

    def resume(self, client):
        for frame in client.subscribe(self.task, after=str(self.numbers[-1])):
            self._take(client, frame)

    def text(self):
        return text_of(self.events)

    def _take(self, client, frame):
        self.events.append(client.read(frame))
        self.numbers.append(int(frame.number))


def text_of(events):
    """What the pieces make; those that came while nobody listened may be one piece now. One that is not appended replaces what was there:
    a remote agent may send a piece twice to whoever subscribes again, and the front takes it back at the end."""
    text = ''
    for event in events:
        if event.kind == 'artifactUpdate':
            piece = ''.join(part for _, part in event.parts)
            text = text + piece if event.append else piece
    return text

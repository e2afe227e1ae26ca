"""The cases about the servers by themselves: they do what their agent is told, each in its own dialect."""

import base64
import contextlib

from raw_client import Refusal

NOT_FOUND = {'jsonrpc': -32001, 'http_json': 404}


def plain_text_is_echoed(client):
    # A word without the number that it needs is plain text too.
    for text in ['hello world', 'stream', 'slow down', 'failed']:
        task = client.send(text)
        equal(text, (task.state, task.parts), ('completed', [('text', f'echo: {text}')]))
        equal('the same task', client.get(task.task), task)


def a_stream_has_one_artifact_in_chunks(client):
    events = list(client.stream('stream 3 1'))
    equal('states', [event.state for event in events if event.state], ['submitted', 'working', 'completed'])
    chunks = [(event.parts[0][1], event.append, event.last_chunk) for event in events if event.kind == 'artifactUpdate']
    wanted = [('chunk 1\n', False, False), ('chunk 2\n', True, False), ('chunk 3\n', True, True)]
    equal('chunks', chunks, wanted)
    joined = client.get(events[0].task).parts
    equal('the artifact', ''.join(text for _, text in joined), 'chunk 1\nchunk 2\nchunk 3\n')


def each_end_is_told(client):
    for text, state, said in [
        ('fail too hard', 'failed', 'too hard'),
        ('reject not mine', 'rejected', 'not mine'),
        ('auth who are you', 'auth-required', 'who are you'),
        ('slow 0.01 fail late', 'failed', 'late'),
    ]:
        task = client.send(text)
        equal(text, (task.state, task.parts), (state, [('text', said)]))


def a_question_is_asked_and_answered(client):
    asked = client.send('ask which color')
    equal('the question', (asked.state, asked.parts), ('input-required', [('text', 'which color')]))
    again = client.send('ask which shade', asked)
    equal('the next question', (again.task, again.state), (asked.task, 'input-required'))
    done = client.send('blue', again)
    equal('the end', (done.task, done.state, done.parts), (asked.task, 'completed', [('text', 'echo: blue')]))


def a_message_comes_without_a_task(client):
    reply = client.send('message good day')
    equal('the reply', (reply.kind, reply.task, reply.parts), ('message', None, [('text', 'good day')]))


def parts_of_every_kind_come(client):
    once = base64.b64encode(b'Hello file').decode()
    # The Python SDK of 0.3 wraps base64 in base64, in HTTP+JSON only.
    twice = base64.b64encode(once.encode()).decode()
    file = client.send('file')
    equal('file', (file.state, [kind for kind, _ in file.parts]), ('completed', ['bytes']))
    wanted = [once, twice] if (client.version, client.binding) == ('0.3', 'http_json') else [once]
    assert file.parts[0][1] in wanted, f'file: wanted one of {wanted}, got {file.parts}'
    for text, part in [
        ('url', ('url', 'https://example.com/output.txt')),
        ('data', ('data', {'key': 'value', 'count': 42})),
    ]:
        task = client.send(text)
        equal(text, (task.state, task.parts), ('completed', [part]))


def a_cancel_stops_the_work(client):
    for text in ['slow 600', 'stream 100000 5']:
        # The stream is not read to its end: some SDKs do not tell it of the cancel.
        with contextlib.closing(client.stream(text)) as events:
            started = next(event for event in events if event.state == 'working')
            equal('the cancel', client.cancel(started.task).state, 'canceled')
            equal('the state', client.get(started.task).state, 'canceled')
            # The time limit of the case ends this.
            while client.send('running').parts != [('text', 'running: 0')]:
                pass


def a_question_can_be_canceled(client):
    asked = client.send('ask which color')
    equal('the cancel', client.cancel(asked.task).state, 'canceled')


def an_unknown_task_is_refused(client):
    try:
        client.get('no-such-task')
    except Refusal as refusal:
        equal('the refusal', refusal.args, (NOT_FOUND[client.binding],))
    else:
        raise AssertionError('there is such a task')


PROBES = [
    plain_text_is_echoed,
    a_stream_has_one_artifact_in_chunks,
    each_end_is_told,
    a_question_is_asked_and_answered,
    a_message_comes_without_a_task,
    parts_of_every_kind_come,
    a_cancel_stops_the_work,
    a_question_can_be_canceled,
    an_unknown_task_is_refused,
]


def equal(what, got, wanted):
    assert got == wanted, f'{what}: wanted {wanted!r}, got {got!r}'

"""The cases about a front, each with a client of one dialect: it gives and keeps what the server behind it gives."""

import base64
import itertools

from probes import equal
from raw_client import Refusal

NOT_FOUND = {'jsonrpc': -32001, 'http_json': 404}

# What 0.1 has no name for, it calls by the nearest one.
STATES_OF_0_1 = {'rejected': 'failed', 'auth-required': 'input-required'}


def the_card_is_that_of_the_agent_with_the_address_of_the_front(front, client):
    equal('the card', (client.card['name'], client.card['skills'][0]['id']), ('Words', 'words'))
    assert client.url.startswith(f'{front.url}/'), f'calls go to {client.url}, not to {front.url}'


def a_finished_task_is_the_same_in_every_dialect(front, client):
    task = client.send('hello world')
    equal('the task', (task.state, task.parts), ('completed', [('text', 'echo: hello world')]))
    for other in front.clients():
        equal(f'the task in {dialect(other)}', other.get(task.task)[1:5], task[1:5])


def a_stream_comes_in_order_and_is_replayed_as_it_was(front, client):
    live = list(client.frames('stream 5 10'))
    events = [client.read(frame) for frame in live]
    chunks = [(event.parts, event.append, event.last_chunk) for event in events if event.kind == 'artifactUpdate']
    wanted = [([('text', f'chunk {i}\n')], i > 1, i == 5) for i in range(1, 6)]
    equal('chunks', chunks, wanted)
    states = [event.state for event in events if event.state]
    equal('states', [state for state, _ in itertools.groupby(states)], ['submitted', 'working', 'completed'])
    task = events[0].task
    equal('the replay', list(client.subscribe(task, after='0')), live)
    numbers = [frame.number for frame in live]
    equal('the rest', [frame.number for frame in client.subscribe(task, after=numbers[2])], numbers[3:])
    for other in front.clients():
        replay = [other.read(frame) for frame in other.subscribe(task, after='0')]
        replayed = [(event.parts, event.append, event.last_chunk) for event in replay if event.kind == 'artifactUpdate']
        equal(f'the replay in {dialect(other)}', replayed, wanted)


def each_end_is_told(_front, client):
    for text, state, said in [
        ('fail too hard', 'failed', 'too hard'),
        ('reject not mine', 'rejected', 'not mine'),
        ('auth who are you', 'auth-required', 'who are you'),
        ('slow 0.01 fail late', 'failed', 'late'),
    ]:
        if client.version == '0.1':
            state = STATES_OF_0_1.get(state, state)
        task = client.send(text)
        equal(text, (task.state, said_by(task)), (state, [('text', said)]))


def a_question_is_answered_in_the_same_remote_task(front, client):
    asked = client.send('ask which color')
    equal('the question', (asked.state, said_by(asked)), ('input-required', [('text', 'which color')]))
    remote = front.latest()
    again = client.send('ask which shade', asked)
    equal('the next question', again[1:4], (asked.task, asked.context, 'input-required'))
    equal('its words', said_by(again), [('text', 'which shade')])
    done = client.send('blue', again)
    equal('the end', done[1:5], (asked.task, asked.context, 'completed', [('text', 'echo: blue')]))
    equal('the remote task', front.latest(), remote)


def a_message_without_a_task_becomes_one(_front, client):
    task = client.send('message good day')
    equal('the reply', (task.kind, task.state, task.parts), ('task', 'completed', [('text', 'good day')]))
    equal('the same task', client.get(task.task), task)


def parts_of_every_kind_come(front, client):
    once = base64.b64encode(b'Hello file').decode()
    # The Python SDK of 0.3 wraps base64 in base64, in HTTP+JSON only.
    twice = base64.b64encode(once.encode()).decode()
    [(kind, content)] = client.send('file').parts
    may_wrap = (front.remote.version, front.remote.binding) == ('0.3', 'http_json')
    assert (kind, content) in [('bytes', once), *([('bytes', twice)] if may_wrap else [])], f'file: {kind} {content}'
    for text, part in [
        ('url', ('url', 'https://example.com/output.txt')),
        ('data', ('data', {'key': 'value', 'count': 42})),
    ]:
        task = client.send(text)
        equal(text, (task.state, task.parts), ('completed', [part]))


def parts_of_every_kind_are_passed_on(_front, client):
    files = [('bytes', base64.b64encode(b'a note').decode()), ('data', {'pizza': [1, 2.5, None]})]
    task = client.send('look', files=files)
    equal('the echo', (task.state, task.parts), ('completed', [('text', 'echo: look'), *files]))


def a_follow_up_has_the_remote_context(front, client):
    one = client.send('one')
    first = front.latest()
    two = client.send('two', context=one.context)
    second = front.latest()
    equal('the context', (two.context, two.parts), (one.context, [('text', 'echo: two')]))
    assert two.task != one.task, f'both are {one.task}'
    equal('the remote context', second['context'], first['context'])
    assert second['task'] != first['task'], f'both are {first["task"]} at the remote'
    client.send('three')
    assert front.latest()['context'] != first['context'], 'a task without a context is in that of another'


def a_cancel_reaches_the_remote_task(front, client):
    for text in ['slow 600', 'stream 100000 5']:
        before = front.latest()
        events = client.stream(text)
        started = next(event for event in events if event.state == 'working')
        remote = front.next_after(before)['task']
        equal('the cancel', client.cancel(started.task).state, 'canceled')
        equal('the end of the stream', [event.state for event in events if event.state][-1:], ['canceled'])
        equal('the state', client.get(started.task).state, 'canceled')
        equal('the remote state', front.remote.get(remote).state, 'canceled')
        # The time limit of the case ends this.
        while not front.is_idle():
            pass


def a_question_can_be_canceled(front, client):
    asked = client.send('ask which color')
    remote = front.latest()['task']
    equal('the cancel', client.cancel(asked.task).state, 'canceled')
    # Nothing runs here, so the front does not wait for the remote. The time limit of the case ends this.
    while front.remote.get(remote).state != 'canceled':
        pass


def an_unknown_task_is_refused(_front, client):
    for refused in [client.get, client.cancel]:
        try:
            refused('no-such-task')
        except Refusal as refusal:
            equal('the refusal', refusal.args, (NOT_FOUND[client.binding],))
        else:
            raise AssertionError('there is such a task')


CASES = [
    the_card_is_that_of_the_agent_with_the_address_of_the_front,
    a_finished_task_is_the_same_in_every_dialect,
    a_stream_comes_in_order_and_is_replayed_as_it_was,
    each_end_is_told,
    a_question_is_answered_in_the_same_remote_task,
    a_message_without_a_task_becomes_one,
    parts_of_every_kind_come,
    parts_of_every_kind_are_passed_on,
    a_follow_up_has_the_remote_context,
    a_cancel_reaches_the_remote_task,
    a_question_can_be_canceled,
    an_unknown_task_is_refused,
]


def said_by(task):
    """The parts of its status but for the one by which Sabir names a question that waits."""
    return [(kind, value) for kind, value in task.parts if not (kind == 'data' and 'questionId' in value)]


def dialect(client):
    return f'{client.version} {client.binding}'

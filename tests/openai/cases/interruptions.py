"""Requests that are cut or repeated, and a server that dies."""

import threading

import openai

from stage import CONTEXT, TASK, chat, failure, say, until


def _keyed(key):
    return {'extra_headers': {'Idempotency-Key': key}}


def _raw(client, text, key, **options):
    messages = [{'role': 'user', 'content': text}]
    return client.chat.completions.with_raw_response.create(model='demo', messages=messages, **_keyed(key), **options)


def a_repeated_request_joins_its_task(stage):
    client = stage.client()
    before = stage.server.number_of_tasks()
    replies = [_raw(client, 'once', 'repeated') for _ in range(3)]
    assert {reply.parse().choices[0].message.content for reply in replies} == {'echo: once'}
    assert len({reply.headers[TASK] for reply in replies}) == 1
    assert stage.server.number_of_tasks() == before + 1


def requests_at_the_same_time_join_too(stage):
    client = stage.client()
    before = stage.server.number_of_tasks()
    said = []
    threads = [threading.Thread(target=lambda: said.append(_raw(client, 'slow 1 same', 'same').headers[TASK])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4 and len(set(said)) == 1, said
    assert stage.server.number_of_tasks() == before + 1


def a_program_that_goes_away_in_mid_stream_changes_nothing(stage):
    client = stage.client()
    with client.chat.completions.with_streaming_response.create(
        model='demo', messages=[{'role': 'user', 'content': 'stream 40 100'}], stream=True
    ) as reply:
        task = reply.headers[TASK]
        next(reply.iter_lines())
    assert stage.server.state(task) == 'working'
    until(lambda: stage.server.state(task) == 'completed', 'the task goes on')


def a_request_that_times_out_changes_nothing(stage):
    client = stage.client(timeout=1)
    before = stage.server.number_of_tasks()
    failure(openai.APITimeoutError, lambda: _raw(client, 'slow 4 after all', 'late'))
    assert _raw(stage.client(), 'slow 4 after all', 'late').parse().choices[0].message.content == 'echo: slow 4 after all'
    assert stage.server.number_of_tasks() == before + 1


def a_question_outlives_a_kill_of_the_server(stage):
    server = stage.own_server()
    client = stage.client(server)
    assert say(client, 'ask Which day?', 'kept').startswith('Which day?')
    stream = chat(client, 'stream 400 100', 'cut', stream=True)
    next(iter(stream))
    server.kill()
    failure(Exception, lambda: list(stream))
    server.start()
    client = stage.client(server)
    assert say(client, 'Monday', 'kept').startswith('echo: Monday')
    reply = client.chat.completions.with_raw_response.create(model='demo', messages=[{'role': 'user', 'content': 'back'}])
    assert reply.parse().choices[0].message.content == 'echo: back' and reply.headers[CONTEXT]

"""Answers: whole and as they grow, with and without a context."""

import base64

from stage import CONTEXT, TASK, chat, say

PNG = base64.b64encode(b'\x89PNG\r\n\x1a\n' + bytes(40)).decode()


def a_message_is_answered(stage):
    raw = stage.client().chat.completions.with_raw_response.create(
        model='demo', messages=[{'role': 'user', 'content': 'hello'}], temperature=0.1, max_completion_tokens=5
    )
    completion = raw.parse()
    assert completion.object == 'chat.completion' and completion.model == 'demo', completion
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ('assistant', 'echo: hello', 'stop'), choice
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    # The task is one like every other.
    task = stage.server.call(f'/tasks/{raw.headers[TASK]}')
    assert task['contextId'] == raw.headers[CONTEXT] and task['status']['state'] == 'TASK_STATE_COMPLETED', task


def an_answer_comes_as_it_grows(stage):
    chunks = list(chat(stage.client(), 'stream 5 10', stream=True, stream_options={'include_usage': True}))
    assert chunks[0].choices[0].delta.role == 'assistant', chunks[0]
    text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert ''.join(text) == ''.join(f'chunk {number}\n' for number in range(1, 6)), text
    assert len(text) > 1, text
    assert chunks[-2].choices[0].finish_reason == 'stop', chunks[-2]
    assert not chunks[-1].choices and chunks[-1].usage.total_tokens >= 0, chunks[-1]
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    plain = list(chat(stage.client(), 'hello', stream=True))
    assert all(chunk.usage is None for chunk in plain)
    assert plain[-1].choices[0].finish_reason == 'stop', plain[-1]


def the_helper_of_the_library_puts_a_stream_together(stage):
    messages = [{'role': 'user', 'content': 'stream 3 0'}]
    with stage.client().chat.completions.stream(model='demo', messages=messages) as stream:
        for _ in stream:
            pass
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == 'chunk 1\nchunk 2\nchunk 3\n', completion


def a_context_is_a_conversation(stage):
    client = stage.client()
    assert say(client, 'one', 'talk') == 'echo: one'
    messages = [
        {'role': 'user', 'content': 'one'},
        {'role': 'assistant', 'content': 'echo: one'},
        {'role': 'user', 'content': 'two'},
    ]
    # The agent has heard the rest before.
    assert say(client, messages, 'talk') == 'echo: two'
    assert stage.server.call('/tasks?contextId=talk')['totalSize'] == 2


def without_a_context_the_conversation_comes_along(stage):
    messages = [
        {'role': 'system', 'content': 'be brief'},
        {'role': 'user', 'content': 'one'},
        {'role': 'assistant', 'content': 'two'},
        {'role': 'user', 'content': 'three'},
    ]
    raw = stage.client().chat.completions.with_raw_response.create(model='demo', messages=messages)
    said = raw.parse().choices[0].message.content
    for words in ('be brief', '<user>\none\n</user>', '<assistant>\ntwo\n</assistant>'):
        assert words in said, said
    assert said.endswith('three'), said
    assert stage.server.call(f'/tasks?contextId={raw.headers[CONTEXT]}')['totalSize'] == 1


def images_and_files_reach_the_agent(stage):
    content = [
        {'type': 'text', 'text': 'look'},
        {'type': 'image_url', 'image_url': {'url': f'data:image/png;base64,{PNG}'}},
        {'type': 'file', 'file': {'filename': 'a.txt', 'file_data': f'data:text/plain;base64,{base64.b64encode(b"hi").decode()}'}},
        {'type': 'input_audio', 'input_audio': {'data': base64.b64encode(b'WAV').decode(), 'format': 'wav'}},
    ]
    messages = [{'role': 'user', 'content': content}]
    raw = stage.client().chat.completions.with_raw_response.create(model='demo', messages=messages)
    task = stage.server.call(f'/tasks/{raw.headers[TASK]}')
    parts = task['history'][0]['parts']
    assert [part.get('mediaType') for part in parts] == [None, 'image/png', 'text/plain', 'audio/wav'], parts
    assert parts[1]['raw'] == PNG and parts[2]['filename'] == 'a.txt', parts


def files_of_the_agent_are_named_in_the_text(stage):
    said = say(stage.client(), 'file')
    assert '[' in said and 'bytes]' in said or '](data:' in said, said

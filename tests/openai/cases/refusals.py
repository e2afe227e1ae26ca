"""What is refused, and how the library tells it."""

import openai

from stage import CREDENTIALS, TOKEN, chat, failure, say


def a_wrong_request_names_its_field(stage):
    client = stage.client()
    before = stage.server.number_of_tasks()
    bad_part = [{'role': 'user', 'content': [{'type': 'video_url', 'video_url': {}}]}]
    for options, param in (
        ({'messages': []}, 'messages'),
        ({'messages': bad_part}, 'messages[0].content[0].type'),
        ({'messages': [{'role': 'user', 'content': 'a'}, {'role': 'king', 'content': 'b'}]}, 'messages[1].role'),
        ({'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': 'b'}]}, 'messages[1].role'),
        ({'n': 2}, 'n'),
        ({'tool_choice': 'required', 'tools': []}, 'tool_choice'),
    ):
        every = {'model': 'demo', 'messages': [{'role': 'user', 'content': 'hi'}], **options}
        error = failure(openai.BadRequestError, lambda: client.chat.completions.create(**every))
        assert error.param == param and error.type == 'invalid_request_error', (options, error.body)
    assert stage.server.number_of_tasks() == before


def tools_of_the_program_are_ignored(stage):
    tool = {'type': 'function', 'function': {'name': 'f', 'parameters': {'type': 'object'}}}
    assert say(stage.client(), 'hello', tools=[tool], tool_choice='auto') == 'echo: hello'


def an_unknown_model_is_not_found(stage):
    error = failure(openai.NotFoundError, lambda: say(stage.client(), 'hi', model='gpt-4o'))
    assert error.code == 'model_not_found' and 'demo' in error.message, error


def a_failure_of_the_agent_is_told_once(stage):
    # The library may retry, and must not: each time would be a task.
    client = stage.client(max_retries=3)
    before = stage.server.number_of_tasks()
    error = failure(openai.UnprocessableEntityError, lambda: say(client, 'fail no luck'))
    assert error.code == 'agent_failed' and error.message.count('no luck') == 1, error
    assert stage.server.state(error.response.headers['x-sabir-task']) == 'failed'
    assert stage.server.number_of_tasks() == before + 1


def a_failure_in_mid_stream_is_raised(stage):
    error = failure(openai.APIError, lambda: list(chat(stage.client(), 'reject not today', stream=True)))
    assert 'not today' in error.message and error.code == 'agent_rejected', error


def without_a_key_nothing_is_answered(stage):
    server = stage.own_server(CREDENTIALS)
    client = stage.client(server, 'sabir_wrong-0123456789abcdef012345678')
    for call in (lambda: say(client, 'hi'), lambda: client.models.list(), lambda: list(chat(client, 'hi', stream=True))):
        error = failure(openai.AuthenticationError, call)
        assert error.code == 'invalid_api_key', error
    client = stage.client(server, TOKEN)
    assert say(client, 'hello') == 'echo: hello'
    assert {model.id for model in client.models.list()} == {'demo', 'asks'}
    # What one caller said in a context is nobody else's.
    assert say(client, 'again', 'shared') == 'echo: again'


def a_door_that_is_closed_is_not_there(stage):
    server = stage.own_server('[openai]\nenabled = false\n')
    failure(openai.NotFoundError, lambda: say(stage.client(server), 'hi'))

"""Agents of kind `openai`: a stand-in for a model, with the tools of servers that are made with the official SDK."""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import urllib.request

import anyio

from stage import PATIENCE, TESTS, free_port, processes, until

TOOL_SERVER = pathlib.Path(__file__).resolve().parents[1] / 'tool_server.py'


@contextlib.contextmanager
def _process(*words):
    child = subprocess.Popen(
        [sys.executable, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait(PATIENCE)
        child.stdout.close()


@contextlib.contextmanager
def _agent(stage, more=''):
    """A server with an agent in front of the stand-in."""
    with _process(TESTS / 'agents/fake_model.py') as model:
        url = processes.first_line(model, PATIENCE)
        assert url, 'the stand-in for a model does not start'
        settings = (
            f'[[agent]]\nid = "chat"\nkind = "openai"\nbase_url = "{url}/v1"\nmodel = "fake-model"\n{more}\n'
        )
        yield stage.own_server(settings)


def _tools_on_stdio():
    return f'mcp_servers.tools = {{ command = {json.dumps([sys.executable, str(TOOL_SERVER)])} }}'


async def _ask(server, text, context=None):
    """The task of a message, once it is over."""
    message = {'messageId': f'{context}-{text}', 'role': 'ROLE_USER', 'parts': [{'text': text}]}
    if context:
        message['contextId'] = context

    def post():
        headers = {'A2A-Version': '1.0', 'Content-Type': 'application/json'}
        body = json.dumps({'message': message}).encode()
        request = urllib.request.Request(f'{server.url}/chat/message:send', body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)['task']

    return await anyio.to_thread.run_sync(post)


def _answer(task):
    artifacts = [artifact for artifact in task.get('artifacts', ()) if artifact.get('name') == 'assistant-response']
    return ''.join(part.get('text', '') for artifact in artifacts for part in artifact['parts'])


def _completed(task):
    assert task['status']['state'] == 'TASK_STATE_COMPLETED', task
    return _answer(task)


async def a_model_answers(stage):
    with _agent(stage, _tools_on_stdio()) as server:
        said = _completed(await _ask(server, 'hello'))
        assert said == 'Hello from the fake model. This reply comes in several deltas.', said


async def a_conversation_survives_a_crash(stage):
    with _agent(stage) as server:
        await _ask(server, 'scenario:text one', 'c')
        server.kill()
        server.start()
        said = _completed(await _ask(server, 'scenario:recall', 'c'))
        assert said == 'I remember these prompts: text, recall.', said


async def a_model_uses_a_tool_over_stdio(stage):
    with _agent(stage, _tools_on_stdio()) as server:
        task = await _ask(server, 'scenario:shell')
        assert _completed(task).endswith('Done. The tool said: it ran 7 words'), task


async def a_model_uses_a_tool_over_http(stage):
    port = free_port()
    with _process(TOOL_SERVER, port):

        async def listens():
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0

        await until(listens, 'the tool server listens')
        with _agent(stage, f'mcp_servers.tools = {{ url = "http://127.0.0.1:{port}/mcp" }}') as server:
            task = await _ask(server, 'scenario:shell')
            assert _completed(task).endswith('Done. The tool said: it ran 7 words'), task


async def no_tool_server_is_left(stage):
    with _agent(stage, _tools_on_stdio()) as server:
        await _ask(server, 'scenario:shell')

        async def gone():
            return not [pid for pid in _running(server) if str(TOOL_SERVER) in _words(pid)]

        await until(gone, 'the tool server is gone')


def _running(server):
    return [int(entry.name) for entry in pathlib.Path('/proc').iterdir() if entry.name.isdigit() and _is_below(entry, server)]


def _is_below(entry, server):
    with contextlib.suppress(OSError):
        return (entry / 'cwd').readlink() == server.folder
    return False


def _words(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace')
    return ''


async def a_model_server_that_fails_is_told(stage):
    with _agent(stage, _tools_on_stdio()) as server:
        for scenario, expected in (
            ('error', 'refused the request'),
            ('error401', 'does not accept the credential'),
            ('cut', 'broke in the middle of its answer'),
        ):
            task = await _ask(server, f'scenario:{scenario}')
            assert task['status']['state'] == 'TASK_STATE_FAILED', task
            assert expected in task['status']['message']['parts'][0]['text'], task

"""What a case runs on: a real server with a database of its own, and clients of the official SDK in one of the two eras of MCP."""

import asyncio
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitResult

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / 'agents'))
import processes

# For what happens at all, however busy the machine is. In seconds.
PATIENCE = 60
MODERN = '2026-07-28'
# The era of a client: how the SDK is told, and the version that it must then speak.
ERAS = {'modern': ('auto', MODERN), 'legacy': ('legacy', '2025-11-25')}
# The same through `sabir mcp`, on standard input and output.
STDIO = ' over stdio'
TOKEN = 'sabir_alice-0123456789abcdef012345678'
CREDENTIALS = (
    f'[[auth.token]]\nsubject = "alice"\nhash = "sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}"\nscopes = ["run", "read"]\n'
)
# What the asking agent wants to do, and says once it is allowed to.
PERMISSION = {
    'text': 'Done. The folder **build** is gone.',
    'title': 'rm -rf build',
    'input': {'command': 'rm -rf build', 'description': 'Remove what was built'},
}


class Server:
    """A server that can be killed and started again at the same address, with the same database."""

    def __init__(self, sabir, settings=''):
        self.sabir = sabir
        self.token = None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-mcp-')).resolve()
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        (self.folder / 'said.json').write_text(json.dumps(PERMISSION))
        agent = [sys.executable, str(TESTS / 'console/asking_agent.py'), str(self.folder / 'said.json')]
        (self.folder / 'sabir.toml').write_text(
            f'{settings}\n[[agent]]\nid = "demo"\nkind = "demo"\ndefault = true\n\n'
            f'[[agent]]\nid = "asks"\nkind = "acp"\ncommand = {json.dumps(agent)}\ndescription = "Asks first"\n'
        )
        self.start()

    def start(self):
        variables = {name: os.environ[name] for name in ('PATH', 'LANG', 'TMPDIR') if name in os.environ}
        store = f'sqlite:{self.folder / "tasks.db"}'
        with open(self.folder / 'log', 'ab') as log:
            self.child = subprocess.Popen(
                [self.sabir, 'serve', '--port', str(self.port), '--store', store, '--config', self.folder / 'sabir.toml'],
                cwd=self.folder,
                env={**variables, 'HOME': str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        line = processes.first_line(self.child, PATIENCE)
        assert line, f'the server does not start: {(self.folder / "log").read_text()[-2000:]}'

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(PATIENCE)
        self.child.stdout.close()

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait(PATIENCE)
        self.child.stdout.close()
        processes.kill_all(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, path):
        """A call of A2A 1.0, which knows the same tasks."""
        request = urllib.request.Request(self.url + path, headers={'A2A-Version': '1.0'})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)

    def number_of_tasks(self):
        return self.call('/tasks')['totalSize']

    def post(self, body, headers=None, method='POST'):
        """A plain HTTP request to the door: its status, headers and body. `body` is bytes, or written as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        every = {'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream', **(headers or {})}
        request = urllib.request.Request(f'{self.url}/mcp', data, every, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        """The last message: the body, or the data of the last event."""
        if self.headers.get('Content-Type', '').startswith('text/event-stream'):
            lines = [line for line in self.body.decode().splitlines() if line.startswith('data: ')]
            return json.loads(lines[-1].removeprefix('data: '))
        return json.loads(self.body)


class Stage:
    """The server of a case, and how its clients speak."""

    def __init__(self, sabir, shared, era):
        self.sabir, self.server, self.era = sabir, shared, era
        self.own = []

    @property
    def is_modern(self):
        return self.era.startswith('modern')

    def own_server(self, settings=''):
        """A server for this case alone."""
        server = Server(self.sabir, settings)
        self.own.append(server)
        return server

    @contextlib.asynccontextmanager
    async def client(self, server=None, token=None, elicit=None, **options):
        """A client of this era. `elicit` answers what it is asked; without it, the client has no elicitation."""
        mode, version = ERAS[self.era.removesuffix(STDIO)]
        base = (server or self.server).url
        url = f'{base}/mcp'
        async with contextlib.AsyncExitStack() as stack:
            transport = url
            if self.era.endswith(STDIO):
                variables = {'SABIR_TOKEN': token} if token else {}
                transport = StdioServerParameters(command=str(self.sabir), args=['mcp', '--url', base], env=variables)
            elif token:
                http_client = create_mcp_http_client(headers={'Authorization': f'Bearer {token}'})
                transport = streamable_http_client(url, http_client=await stack.enter_async_context(http_client))
            made = Client(transport, mode=mode, elicitation_callback=elicit, **options)
            client = await stack.enter_async_context(made)
            assert client.protocol_version == version, client.protocol_version
            yield client

    def close(self):
        for server in self.own:
            server.close()


class User:
    """Answers elicitations with one action, and remembers what was asked."""

    def __init__(self, action, content=None):
        self.action, self.content = action, content
        self.questions = []

    async def __call__(self, _context, params):
        self.questions.append(params)
        return ElicitResult(action=self.action, content=self.content)


def words(result):
    """The text that a model reads."""
    return result.content[0].text


def data(result):
    return result.structured_content


def data_of(result, state):
    """The task of a result, which must be in this state."""
    task = result.structured_content
    assert task and task['state'] == state, f'{state} expected: {task or words(result)}'
    return task


async def failure(awaited):
    """What an awaited call raises."""
    try:
        result = await awaited
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return error
    raise AssertionError(f'it succeeds: {result}')


async def until(condition, what):
    """Waits until the awaited condition holds, and returns it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := await condition()):
        assert time.monotonic() < deadline, f'never: {what}'
        await anyio.sleep(0.05)
    return found


async def begin(client, text, **arguments):
    """The id of a task that has begun; nobody waits for it."""
    result = await client.call_tool('ask_agent', {'message': text, 'wait_seconds': 0, **arguments})
    assert not result.is_error, words(result)
    return data(result)['task']


async def in_state(client, task, *states):
    """The task once it is in one of these states."""

    async def shown():
        now = data(await client.call_tool('get_task', {'task': task}))
        return now if now['state'] in states else None

    return await until(shown, f'{task} is {" or ".join(states)}')


def started(coroutine):
    """Runs it beside the case."""
    return asyncio.get_running_loop().create_task(coroutine)


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]

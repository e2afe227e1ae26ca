"""What a case runs on: a real server with a database of its own, and clients of the official library."""

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
import urllib.request

from openai import OpenAI

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / 'agents'))
import processes

# For what happens at all, however busy the machine is. In seconds.
PATIENCE = 60
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
ALLOWED, DENIED = PERMISSION['text'], 'It was not allowed.'
# The members that a reply has beside those of the API.
CONTEXT, TASK = 'x-sabir-context', 'x-sabir-task'


class Server:
    """A server that can be killed and started again at the same address, with the same database."""

    def __init__(self, sabir, settings=''):
        self.sabir = sabir
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-openai-')).resolve()
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

    def state(self, task):
        return self.call(f'/tasks/{task}')['status']['state'].removeprefix('TASK_STATE_').lower()


class Stage:
    """The server of a case."""

    def __init__(self, sabir, shared):
        self.sabir, self.server = sabir, shared
        self.own = contextlib.ExitStack()

    def own_server(self, settings=''):
        """A server for this case alone."""
        return self.own.enter_context(contextlib.closing(Server(self.sabir, settings)))

    def client(self, server=None, key='none', **options):
        """The library as people use it. It repeats nothing by itself, unless the case wants that."""
        options = {'max_retries': 0, 'timeout': PATIENCE, **options}
        return self.own.enter_context(OpenAI(base_url=f'{(server or self.server).url}/v1', api_key=key, **options))

    def close(self):
        self.own.close()


def chat(client, text, context=None, model='demo', **options):
    """What a request with one message of the user is answered."""
    headers = {'X-Sabir-Context': context} if context else {}
    messages = text if isinstance(text, list) else [{'role': 'user', 'content': text}]
    return client.chat.completions.create(model=model, messages=messages, extra_headers=headers, **options)


def say(client, text, context=None, model='demo', **options):
    """The words of the answer."""
    return chat(client, text, context, model, **options).choices[0].message.content


def failure(kind, call):
    """What a call raises, which must be of this kind."""
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f'it succeeds: {result}')


def until(condition, what):
    """Waits until the condition holds, and returns it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f'never: {what}'
        time.sleep(0.05)
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]

"""The official Python SDK of the Agent Client Protocol in front of `sabir acp` and a real server.

    suite.py --sabir FILE [--only WORD]

Each function that begins with `case_` is a case. The SDK checks every message of the agent against the schema of the protocol.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import traceback

import acp
from acp import schema

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / 'agents'))
import processes

# For what happens at all, however busy the machine is. In seconds.
PATIENCE = 60
LIMIT = 120
# What the asking agent wants to do, and says once it is allowed to.
PERMISSION = {'text': 'The folder is gone.', 'title': 'rm -rf build', 'input': {'command': 'rm -rf build'}}


class Server:
    """A server that can be killed and started again at the same address, with the same database."""

    def __init__(self, sabir):
        self.sabir = sabir
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-acp-')).resolve()
        with socket.socket() as listener:
            listener.bind(('127.0.0.1', 0))
            self.port = listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}'
        (self.folder / 'said.json').write_text(json.dumps(PERMISSION))
        agent = [sys.executable, str(TESTS / 'console/asking_agent.py'), str(self.folder / 'said.json')]
        (self.folder / 'sabir.toml').write_text(
            '[[agent]]\nid = "demo"\nkind = "demo"\ndefault = true\n\n'
            f'[[agent]]\nid = "asks"\nkind = "acp"\ncommand = {json.dumps(agent)}\n'
        )
        self.start()

    def start(self):
        store = f'sqlite:{self.folder / "tasks.db"}'
        with open(self.folder / 'log', 'ab') as log:
            self.child = subprocess.Popen(
                [self.sabir, 'serve', '--port', str(self.port), '--store', store, '--config', self.folder / 'sabir.toml'],
                cwd=self.folder,
                env={'PATH': os.environ['PATH'], 'HOME': str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        line = processes.first_line(self.child, PATIENCE)
        assert line, f'the server does not start: {(self.folder / "log").read_text()[-2000:]}'

    def stop(self, how):
        self.child.send_signal(how)
        self.child.wait(PATIENCE)
        self.child.stdout.close()

    def close(self):
        self.stop(signal.SIGTERM)
        processes.kill_all(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


class Editor(acp.Client):
    """What a user sees, and what the user says to a dialog."""

    def __init__(self, choice=None):
        self.choice = choice
        self.updates = []
        self.asked = []
        self.changed = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.changed.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((tool_call, options))
        if self.choice is None:
            outcome = schema.DeniedOutcome(outcome='cancelled')
        else:
            chosen = next(option for option in options if option.kind == self.choice)
            outcome = schema.AllowedOutcome(outcome='selected', option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    def text(self, kind='agent_message_chunk'):
        pieces = [update.content for update in self.updates if update.session_update == kind]
        return ''.join(piece.text for piece in pieces if piece.type == 'text')

    async def until_said(self, text):
        while text not in self.text():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)


@contextlib.asynccontextmanager
async def connected(server, *words, choice=None):
    """An editor and its connection to a new `sabir acp`."""
    editor = Editor(choice)
    arguments = ['acp', '--url', server.url, *words]
    async with acp.spawn_agent_process(editor, str(server.sabir), *arguments) as (connection, _process):
        answer = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert answer.protocol_version == 1 and answer.agent_capabilities.load_session, answer
        yield connection, editor


async def new(connection, server):
    return (await connection.new_session(cwd=str(server.folder), mcp_servers=[])).session_id


def prompt(connection, session, text):
    return connection.prompt(session_id=session, prompt=[acp.text_block(text)])


async def case_prompts_are_answered_and_tools_are_shown(server):
    async with connected(server) as (connection, editor):
        session = await new(connection, server)
        assert (await prompt(connection, session, 'hello')).stop_reason == 'end_turn'
        assert editor.text() == 'echo: hello', editor.updates
        editor.updates.clear()
        await prompt(connection, session, 'tool read_file')
        shown = [(one.session_update, one.status) for one in editor.updates if hasattr(one, 'tool_call_id')]
        assert shown == [('tool_call', 'in_progress'), ('tool_call_update', 'completed')], shown
        assert (await prompt(connection, session, 'reject no')).stop_reason == 'refusal'
        for text in ('file', 'url', 'data'):
            assert (await prompt(connection, session, text)).stop_reason == 'end_turn'


async def case_a_failure_has_its_reason(server):
    async with connected(server) as (connection, _editor):
        session = await new(connection, server)
        error = await failure(prompt(connection, session, 'fail out of paper'))
        assert error.code == -32603 and 'out of paper' in str(error), error
        error = await failure(connection.load_session(cwd='/', session_id='nobody', mcp_servers=[]))
        assert error.code == -32002, error
        error = await failure(connection.set_session_mode(session_id=session, mode_id='x'))
        assert error.code == -32601, error


async def case_permission_is_a_dialog(server):
    for choice, expected in (('allow_once', PERMISSION['text']), ('reject_once', 'It was not allowed.'), (None, 'It was not allowed.')):
        async with connected(server, '--agent', 'asks', choice=choice) as (connection, editor):
            session = await new(connection, server)
            assert (await prompt(connection, session, 'go')).stop_reason == 'end_turn'
            assert editor.text().strip() == expected, editor.updates
            [(tool, _options)] = editor.asked
            assert tool.raw_input == PERMISSION['input'], tool


async def case_a_cancel_is_confirmed(server):
    async with connected(server) as (connection, editor):
        session = await new(connection, server)
        turn = asyncio.create_task(prompt(connection, session, 'stream 100000 10'))
        await editor.until_said('chunk 1')
        await connection.cancel(session_id=session)
        assert (await turn).stop_reason == 'cancelled'


async def case_a_session_is_loaded_after_a_restart(server):
    async with connected(server) as (connection, _editor):
        session = await new(connection, server)
        await prompt(connection, session, 'hello')
        await prompt(connection, session, 'ask Which day?')
    server.stop(signal.SIGKILL)
    server.start()
    async with connected(server) as (connection, editor):
        await connection.load_session(cwd=str(server.folder), session_id=session, mcp_servers=[])
        await editor.until_said('Which day?')
        assert editor.text('user_message_chunk').replace('\n', '') == 'helloask Which day?', editor.updates
        editor.updates.clear()
        assert (await prompt(connection, session, 'Monday')).stop_reason == 'end_turn'
        assert editor.text() == 'echo: Monday', editor.updates
        listed = (await connection.list_sessions(cwd=str(server.folder))).sessions
        assert [one.title for one in listed if one.session_id == session] == ['hello'], listed


async def case_a_server_that_is_killed_in_the_middle_is_waited_for(server):
    async with connected(server) as (connection, editor):
        session = await new(connection, server)
        turn = asyncio.create_task(failure(prompt(connection, session, 'stream 100000 10')))
        await editor.until_said('chunk 1')
        server.stop(signal.SIGKILL)
        server.start()
        # What was running when the server ended has failed, and the editor learns it.
        assert 'failed' in str(await turn)
        editor.updates.clear()
        assert (await prompt(connection, session, 'hello')).stop_reason == 'end_turn'
        assert editor.text() == 'echo: hello', editor.updates


async def failure(awaited):
    try:
        result = await awaited
    except acp.RequestError as error:
        return error
    raise AssertionError(f'it succeeds: {result}')


def run(server, case):
    """Why the case failed; None: it passed."""

    async def limited():
        async with asyncio.timeout(LIMIT):
            await case(server)

    try:
        asyncio.run(limited())
    except Exception as error:
        traceback.print_exc()
        return f'{type(error).__name__}: {error}'.replace('\n', ' ')[:500]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = failed = 0
    server = Server(args.sabir.resolve())
    try:
        for function, case in list(globals().items()):
            name = function.removeprefix('case_').replace('_', ' ')
            if not function.startswith('case_') or args.only not in name:
                continue
            reason = run(server, case)
            passed, failed = (passed, failed + 1) if reason else (passed + 1, failed)
            print(f'not ok - {name}: {reason}' if reason else f'ok - {name}', flush=True)
    finally:
        server.close()
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


if __name__ == '__main__':
    main()

"""Runs rows of Sabir's commands: each step is one command, and says what it must print and how it must end.

Commands print JSON lines in a pipe. A step says what the last of them holds, by paths such as `card.skills.0.id`, and
what of it later steps need: with `keep={'task': 'task.id'}` the argument `{task}` is that id. These are always known:

- `{url}`, `{version}` and `{binding}` (as cards spell it) of the server;
- `{nobody}`, an address where no server is;
- `{folder}`, an empty folder for files, `{note}` and `{order}`, a text and a JSON file.
"""

import json
import os
import pathlib
import subprocess
import tempfile

from typing import Any, NamedTuple

ALL_VERSIONS = ('1.0', '0.3', '0.2')


class Step(NamedTuple):
    arguments: list[str]
    holds: dict[str, Any] = {}
    keep: dict[str, str] = {}
    exit_code: int = 0
    artifact: str | None = None  # the text that the events before the last line make, piece by piece
    saves: tuple[bytes, ...] = ()  # `{folder}` has one file, which holds one of these


class Row(NamedTuple):
    name: str
    steps: list[Step]
    versions: tuple[str, ...] = ALL_VERSIONS


class Sabir:
    """The binary, and the server that its commands talk to; each of them gets the flags as well."""

    def __init__(self, binary, url, version, binding, flags=()):
        self.binary = binary
        self.flags = flags
        spelled = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}[binding]
        # Port 1 needs root to listen on, and has no user any more.
        self.names = {'url': url, 'version': version, 'binding': spelled, 'nobody': 'http://127.0.0.1:1'}

    def check(self, steps):
        with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as folder:
            note, order = pathlib.Path(files, 'note.txt'), pathlib.Path(files, 'order.json')
            note.write_text('a note')
            order.write_text('{"pizza": [1, 2.5, null]}')
            names = {**self.names, 'folder': folder, 'note': note, 'order': order}
            for step in steps:
                self._check_step(step, names)

    def _check_step(self, step, names):
        arguments = [*(argument.format(**names) for argument in step.arguments), *self.flags]
        command = ' '.join(arguments)
        *events, last = self.run(arguments, step.exit_code)
        for path, wanted in step.holds.items():
            wanted = wanted.format(**names) if isinstance(wanted, str) else wanted
            got = at(last, path)
            assert got == wanted, f'{command}: {path}: wanted {wanted!r}, got {got!r} in {last}'
        if step.artifact is not None:
            made = artifact_text(events)
            assert made == step.artifact, f'{command}: wanted the artifact {step.artifact!r}, got {made!r} in {events}'
        if step.saves:
            saved = [file.read_bytes() for file in pathlib.Path(names['folder']).iterdir()]
            assert len(saved) == 1, f'{command}: {len(saved)} files are saved'
            assert saved[0] in step.saves, f'{command}: wanted one of {step.saves}, saved {saved[0]}'
        names.update({name: at(last, path) for name, path in step.keep.items()})

    def run(self, arguments, exit_code=0):
        """All lines that the command printed, once it ended as it must."""
        with self.start(arguments) as process:
            try:
                stdout, stderr = process.communicate()
            finally:
                process.kill()
        seen = f'exit code {process.returncode}, stdout {stdout!r}, stderr {stderr!r}'
        assert process.returncode == exit_code, f'{" ".join(arguments)}: wanted exit code {exit_code}, got {seen}'
        assert stdout, f'{" ".join(arguments)}: printed nothing: {seen}'
        return [json.loads(line) for line in stdout.splitlines()]

    def start(self, arguments, **options):
        """A command that runs; its output can be read while it does."""
        return subprocess.Popen(
            [self.binary, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            **options,
        )


def environment():
    """Ours without settings of Sabir, and without the machine's proxy: the loopback interface is not behind it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('SABIR_', 'A2ACLI_'))}
    return {**kept, 'NO_PROXY': '127.0.0.1', 'no_proxy': '127.0.0.1'}


def artifact_text(events):
    """What the pieces of the only artifact make together."""
    updates = [event['artifactUpdate'] for event in events if 'artifactUpdate' in event]
    assert len({update['artifact']['artifactId'] for update in updates}) <= 1, f'more than one artifact: {updates}'
    text = ''
    for update in updates:
        text = text if update.get('append') else ''
        text += ''.join(part['text'] for part in update['artifact']['parts'])
    return text


def at(value, path):
    """What the value holds at the path; None when there is nothing."""
    for name in path.split('.'):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value

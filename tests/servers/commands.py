"""The rows about Sabir's client commands: what is run, and what its output must hold.

Commands print JSON lines in a pipe. A step says what the last of them holds, by paths such as `card.skills.0.id`, and
what of it later steps need: with `keep={'task': 'task.id'}` the argument `{task}` is that id. `{url}` and `{binding}`
(as cards spell it) are always known.
"""

import json
import os
import subprocess

from typing import NamedTuple

ALL_VERSIONS = ('1.0', '0.3', '0.2')


class Step(NamedTuple):
    arguments: list[str]
    holds: dict
    keep: dict = {}
    exit_code: int = 0


class Row(NamedTuple):
    name: str
    steps: list[Step]
    versions: tuple = ALL_VERSIONS


CARD = ['card', '{url}', '--json']

ROWS = [
    Row('the card is found', [Step(CARD, {'card.name': 'Words', 'card.skills.0.id': 'words'})]),
    Row(
        'the card names its interface',
        [Step(CARD, {'card.supportedInterfaces.0.protocolBinding': '{binding}'})],
        versions=('1.0',),
    ),
    Row('the card names its transport', [Step(CARD, {'card.preferredTransport': '{binding}'})], versions=('0.3',)),
    Row('the card of 0.2 has an older path', [Step(CARD, {'card.protocolVersion': '0.2.6'})], versions=('0.2',)),
]


class Sabir:
    """The binary, and the server that its commands talk to."""

    def __init__(self, binary, url, binding):
        self.binary = binary
        self.names = {'url': url, 'binding': {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}[binding]}

    def check(self, steps):
        names = dict(self.names)
        for step in steps:
            arguments = [argument.format(**names) for argument in step.arguments]
            printed = self.run(arguments, step.exit_code)
            for path, wanted in step.holds.items():
                wanted = wanted.format(**names) if isinstance(wanted, str) else wanted
                got = at(printed, path)
                assert got == wanted, f'{" ".join(arguments)}: {path}: wanted {wanted!r}, got {got!r} in {printed}'
            names.update({name: at(printed, path) for name, path in step.keep.items()})

    def run(self, arguments, exit_code):
        """The last line that the command printed, once it ended as it must."""
        # Whatever proxy the machine has, the loopback interface is not behind it.
        environment = {**os.environ, 'NO_PROXY': '127.0.0.1', 'no_proxy': '127.0.0.1'}
        ended = subprocess.run(
            [self.binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
        )
        seen = f'exit code {ended.returncode}, stdout {ended.stdout!r}, stderr {ended.stderr!r}'
        assert ended.returncode == exit_code, f'{" ".join(arguments)}: wanted exit code {exit_code}, got {seen}'
        lines = ended.stdout.splitlines()
        assert lines, f'{" ".join(arguments)}: printed nothing: {seen}'
        return json.loads(lines[-1])


def at(value, path):
    """What the value holds at the path; None when there is nothing."""
    for name in path.split('.'):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value

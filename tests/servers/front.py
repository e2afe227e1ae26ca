"""A durable front: a Sabir before the server of an SDK, with its tasks in a file of its own.

It has a free port each time it starts, so clients are made anew after a restart.
"""

import json
import pathlib
import signal
import subprocess
import tempfile

from command_runner import environment
from raw_client import RawClient

# Whatever the server behind it speaks, a front speaks all of them.
DIALECTS = [
    ('1.0', 'jsonrpc'),
    ('1.0', 'http_json'),
    ('0.3', 'jsonrpc'),
    ('0.3', 'http_json'),
    ('0.2', 'jsonrpc'),
    ('0.1', 'jsonrpc'),
]

SECONDS_TO_STOP = 20


class Front:
    """`sabir proxy`, or with settings of the agent `sabir serve`. After `with` its process and folder are gone."""

    def __init__(self, binary, remote_url, version, binding, settings=None):
        self.remote = RawClient(remote_url, version, binding)
        self._url = None
        self._binary = binary
        self._remote_url = remote_url
        self._settings = settings
        self._process = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_):
        self.kill()
        self._folder.cleanup()

    @property
    def url(self):
        """Its address; it is started where it does not run, so that each case can be run alone."""
        if not self._process:
            self.start()
        return self._url

    def start(self):
        folder = pathlib.Path(self._folder.name)
        words = ['proxy', self._remote_url]
        if self._settings:
            words = ['serve', '--config', 'sabir.toml']
            agent = f'[[agent]]\nid = "remote"\nkind = "a2a"\nurl = "{self._remote_url}"\n{self._settings}\n'
            (folder / 'sabir.toml').write_text(agent)
        with open(folder / 'log', 'a') as log:
            self._process = subprocess.Popen(
                [self._binary, *words, '--port', '0', '--store', f'sqlite:{folder}/tasks.db'],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=environment(),
                text=True,
            )
        line = self._process.stdout.readline()
        assert line, f'the front did not start: {(folder / "log").read_text()}'
        self._url = json.loads(line)['url']

    def find_agent(self):
        """Waits until it has the card of the agent. The time limit of the case ends this."""
        while self.client('1.0', 'jsonrpc').card['name'] != 'Words':
            pass

    def kill(self):
        """Ends it as `kill -9` does."""
        process, self._process = self._process, None
        if process:
            process.kill()
            process.communicate()

    def stop(self):
        """Ends it in order; it has said nothing more, and leaves nobody behind that holds its output."""
        process, self._process = self._process, None
        try:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=SECONDS_TO_STOP)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, said) == (0, ''), f'it ended with {process.returncode} and printed {said!r}'

    def client(self, version, binding):
        return RawClient(self.url, version, binding)

    def clients(self):
        """One of each dialect."""
        return [self.client(*dialect) for dialect in DIALECTS]

    def latest(self):
        """The ids at the server behind it, of the task and the context of the last message that came to it."""
        [(_, ids)] = self.remote.send('latest').parts
        return ids

    def next_after(self, ids):
        """The ids of the next message that comes to the server behind it. The time limit of the case ends this."""
        while (latest := self.latest()) == ids:
            pass
        return latest

    def is_idle(self):
        """Whether no turn runs at the server behind it."""
        return self.remote.send('running').parts == [('text', 'running: 0')]

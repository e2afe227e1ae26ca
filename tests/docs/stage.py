"""What a page runs on: a home, a project, a free port, the programs it names, and a stand-in for a model.

Everything is new for each page and gone afterwards. Nothing of the person's own settings or keys is seen.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'agents'))
import processes
from programs import PROGRAMS

# The ports that pages name: the default one, and those of further servers.
DEFAULT_PORT = '41242'
DOCUMENTED_PORT = re.compile(r'\b41[23]\d\d\b')
PYTHON, NODE = 'python-1.3.0', 'js-1.3.0'
KNOWN = ('claude-code', 'codex')


class Stage:
    def __init__(self, root, args):
        self.root = root
        self.args = args
        self.helpers = []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-docs-')).resolve()
        self.home = self.folder / 'home'
        self.bin = self.folder / 'bin'
        self.scratch = self.folder / 'typed'
        for folder in (self.home, self.bin, self.scratch, self.folder / 'installed' / 'bin'):
            folder.mkdir(parents=True)
        self.ports = {}
        try:
            self._furnish()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for helper in self.helpers:
            helper.send_signal(signal.SIGTERM)
        # nginx ends its workers itself. Without it they could not be found: they have another name and no environment.
        for helper in self.helpers:
            try:
                helper.wait(5)
            except subprocess.TimeoutExpired:
                pass
        # All that was started here has the folder in its environment, whoever its parent is by now.
        processes.kill_all(self.folder)
        for helper in self.helpers:
            helper.wait(20)
            if helper.stdout:
                helper.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def substituted(self, text):
        """The text with ports of this run for those of the pages."""
        return DOCUMENTED_PORT.sub(lambda found: str(self._port(found[0])), text)

    def _port(self, documented):
        return self.ports.setdefault(documented, free_port())

    def place(self, name, folder):
        """Where a file of a page goes: absolute names lie below a root of our own."""
        return self.folder / 'root' / name.lstrip('/') if name.startswith('/') else pathlib.Path(folder) / name

    def environment(self):
        passed = ('LANG', 'CARGO_HOME', 'RUSTUP_HOME', 'RUSTUP_TOOLCHAIN', 'CARGO_TARGET_DIR', 'SSL_CERT_FILE')
        variables = {name: os.environ[name] for name in passed if name in os.environ}
        real_home = pathlib.Path(os.environ['HOME'])
        variables.setdefault('CARGO_HOME', str(real_home / '.cargo'))
        variables.setdefault('RUSTUP_HOME', str(real_home / '.rustup'))
        venv = self.args.clients.resolve() / PYTHON
        path = [self.folder / 'installed' / 'bin', self.bin, venv / 'bin', *os.environ['PATH'].split(':')]
        variables |= {
            'HOME': str(self.home),
            'TMPDIR': str(self.folder),
            'PATH': ':'.join(map(str, path)),
            'CARGO_INSTALL_ROOT': str(self.folder / 'installed'),
            'VIRTUAL_ENV': str(venv),
            'SABIR_LISTEN': f'127.0.0.1:{self._port(DEFAULT_PORT)}',
            'NO_COLOR': '1',
            'NO_PROXY': '*',
            'TERM': 'dumb',
            'COLUMNS': '200',
            'PIP_DISABLE_PIP_VERSION_CHECK': '1',
        }
        for name in KNOWN:
            variables |= PROGRAMS[name].environment(self.model_url)
        return variables

    def helper(self, words, **more):
        """A process that lives as long as the page."""
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, **more)
        self.helpers.append(child)
        return child

    def _furnish(self):
        (self.bin / 'sabir').symlink_to(self.args.sabir.resolve())
        programs = self.args.programs.resolve()
        for name in KNOWN:
            binary = PROGRAMS[name].binary
            (self.bin / binary).symlink_to(programs / name / 'node_modules' / '.bin' / binary)
        model = pathlib.Path(__file__).resolve().parents[1] / 'agents' / 'fake_model.py'
        # The folder in its words is how it is found at the end.
        asked = self.folder / 'asked'
        asked.mkdir()
        child = self.helper([sys.executable, model, '--dump', asked], cwd=self.folder, stdout=subprocess.PIPE)
        self.model_url = processes.first_line(child, 20)
        assert self.model_url, 'the stand-in for a model did not start'
        for name in KNOWN:
            for path, text in PROGRAMS[name].files(self.model_url).items():
                file = self.home / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        # The project that pages call ~/my-project, and a second one.
        for name in ('my-project', 'other-project'):
            project = self.home / name
            project.mkdir()
            (project / 'main.py').write_text('print("hello")\n')
            commit = 'git init --quiet && git add . && git -c user.name=You -c user.email=you@example.com commit --quiet -m first'
            subprocess.run(commit, shell=True, cwd=project, env=self.environment(), check=True)
        # A refusal is a failed command, and nothing waits for ever.
        (self.home / '.curlrc').write_text('fail-with-body\nmax-time = 120\n')
        # Node looks for packages from where a script lies upwards.
        modules = self.args.clients.resolve() / NODE / 'node_modules'
        (self.home / 'node_modules').symlink_to(modules)
        (self.home / 'package.json').write_text('{"type": "module", "private": true}\n')


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]

"""What a case runs on: the stand-in for a model, a home, a workspace and a server, all of them new and gone afterwards.

The server has three agents that run the same program in the same workspace: `all` may use every tool, `none` none that
needs permission, and `ask` asks its caller. A mode that cannot ask has no third.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import processes
from a2a import Client
from expect import equal, holds

HERE = pathlib.Path(__file__).resolve().parent

# What stands in a file beside the workspace, which no caller may see.
OUTSIDE = 'this-is-outside-the-workspace'

# Where the programs keep what their users have allowed, below the home and below the workspace.
SETTINGS = (
    '.claude/settings*.json',
    '.claude.json',
    '.codex/config.toml',
    '.codex/rules/**/*',
    '.gemini/settings.json',
    '.gemini/policies/**/*',
    '.config/goose/permission*.yaml',
    '.config/goose/permissions/**/*',
)
START_SECONDS = 20
STOP_SECONDS = 20


class Stage:
    def __init__(self, sabir, programs, program, mode, keep_warm=None):
        self.keep_warm = keep_warm
        self.sabir = sabir
        self.program = program
        self.mode = mode
        self.programs = programs
        self.binary = self._binary(program)
        # The program of the agent `none`, if it is another one.
        self.beside = None
        self.model = None
        self.more = {}
        self.server = None
        self.client = None
        self.log_end = ''

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-agents-')).resolve()
        self.log = self.folder / 'sabir.log'
        try:
            self._furnish()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            # A case that failed has said enough; one that passed has to leave nothing behind.
            if error is None:
                self.stop_server()
                self.nothing_is_left()
        finally:
            self._clear()

    def serve(self, **more):
        """Starts the server, again after `stop_server` on the same store, and waits until it is ready. `more` are settings of
        its agents."""
        self.configure(**more)
        self._start()

    def serve_beside(self, other, **more):
        """The same, with another program for the agent `none`."""
        self.beside = other
        self.put(other.files(self.model_url), self.home)
        self.serve(**more)

    def configure(self, **more):
        """Writes the configuration of the server, and starts none."""
        self.more = more
        (self.folder / 'sabir.toml').write_text(self._configuration())

    def serve_demo(self):
        """The same with the demo agent alone."""
        self.configure_demo()
        self._start()

    def configure_demo(self):
        """Writes the configuration of a server with the demo agent alone, and starts none."""
        demo = '[[agent]]\nid = "demo"\nkind = "demo"\n'
        (self.folder / 'sabir.toml').write_text(self._server_configuration() + demo)

    def mcp_http(self):
        """The MCP server at the address of the server."""
        return {'url': f'{self.client.url}/mcp'}

    def mcp_stdio(self):
        """The MCP server that a program starts itself."""
        return {'command': str(self.sabir), 'args': ['mcp', '--config', str(self.folder / 'sabir.toml')]}

    def _start(self):
        with open(self.log, 'ab') as log:
            self.server = subprocess.Popen(
                [self.sabir, 'serve', '--config', self.folder / 'sabir.toml'],
                cwd=self.folder,
                env=self._surroundings(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        line = processes.first_line(self.server, START_SECONDS)
        assert line, f'the server ended or took more than {START_SECONDS} s before it said where it serves'
        self.client = Client(json.loads(line)['url'])

    def stop_server(self):
        if self.server is None:
            return
        self.server.terminate()
        equal('exit code of the server after SIGTERM', self.server.wait(STOP_SECONDS), 0)
        self.server.stdout.close()
        self.server = None

    def kill_server(self):
        """As a crash would end it. All that it has started must be gone soon, too."""
        self.server.kill()
        self.server.wait(STOP_SECONDS)
        self.server.stdout.close()
        self.server = None
        self.nothing_is_left()

    def run_alone(self, *arguments, seconds=40):
        """Runs the program with no server between, as it would run from a shell."""
        return subprocess.run(
            [self.binary, *arguments],
            cwd=self.workspace,
            env=self._surroundings() | self.program.environment(self.model_url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            text=True,
        )

    def check(self, *arguments, is_logged_in=True, seconds=100):
        """Runs `sabir agents --check`: the exit code, and what it says of each agent."""
        if not is_logged_in:
            # A home that no program has seen, and no variables that name a key or another provider.
            shutil.rmtree(self.home)
            self.home.mkdir()
        (self.folder / 'sabir.toml').write_text(self._configuration(is_logged_in))
        ended = subprocess.run(
            [self.sabir, 'agents', '--config', self.folder / 'sabir.toml', '--check', *arguments],
            cwd=self.folder,
            env=self._surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=seconds,
        )
        return ended.returncode, json.loads(ended.stdout)

    def nothing_is_left(self, seconds=5):
        """The server may run on; all that it has started must be gone in time."""
        known = {self.model.pid} | ({self.server.pid} if self.server else set())
        left = processes.until_gone(self.folder, known, seconds)
        holds(f'what still runs after {seconds} s', not left, left)

    def last_words(self):
        """The end of the server's log, to follow a reason."""
        return f' | the end of the log: {self.log_end}' if self.log_end else ''

    @property
    def tool_ran(self):
        return self.workspace / 'tool-ran.txt'

    def tool_runs(self):
        """How often the tool has run: each time it adds a line."""
        return len(self.tool_ran.read_text().splitlines()) if self.tool_ran.exists() else 0

    def requests(self):
        """All that the model was asked, as the text of its requests."""
        return '\n'.join(file.read_text() for file in sorted(self.asked.iterdir()))

    def permissions(self):
        """What the program keeps of permissions: each file with its text."""
        files = (file for place in (self.home, self.workspace) for name in SETTINGS for file in place.glob(name))
        kept = {str(file): _permissions(file) for file in files if file.is_file()}
        return {file: permissions for file, permissions in kept.items() if permissions}

    def put(self, files, place=None):
        """Writes files below the workspace, or below another place."""
        for path, text in files.items():
            file = (place or self.workspace) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def commit(self, words):
        """Commits all that is in the workspace."""
        who = ['-c', 'user.name=suite', '-c', 'user.email=suite@localhost']
        for command in (['add', '--all'], [*who, 'commit', '--quiet', '--allow-empty', '-m', words]):
            subprocess.run(['git', *command], cwd=self.workspace, env=self._surroundings(), check=True)

    def _furnish(self):
        self.home = self.folder / 'home'
        self.workspace = self.folder / 'workspace'
        self.asked = self.folder / 'asked'
        for folder in (self.home, self.workspace, self.asked):
            folder.mkdir()
        (self.folder / 'outside.txt').write_text(OUTSIDE + '\n')
        self.model = subprocess.Popen(
            [sys.executable, HERE / 'fake_model.py', '--dump', self.asked],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.model_url = processes.first_line(self.model, START_SECONDS)
        assert self.model_url, f'the stand-in for a model did not start within {START_SECONDS} s'
        self.put(self.program.files(self.model_url), self.home)
        subprocess.run(['git', 'init', '--quiet'], cwd=self.workspace, env=self._surroundings(), check=True)

    def _clear(self):
        if self.log.exists():
            self.log_end = ' '.join(self.log.read_text(errors='replace').splitlines()[-5:])
        # All that was started here works below the folder, whoever its parent is by now.
        processes.kill_all(self.folder)
        for child in (self.server, self.model):
            if child is not None:
                child.kill()
                child.wait(STOP_SECONDS)
                child.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _binary(self, program):
        return self.programs / program.name / 'node_modules' / '.bin' / program.binary

    def _surroundings(self):
        """What the server and a program may see of our environment; a key or a proxy of a person must not leak in."""
        passed = {name: os.environ[name] for name in ('PATH', 'LANG', 'RUST_LOG', 'RUST_BACKTRACE') if name in os.environ}
        return passed | {'HOME': str(self.home), 'TMPDIR': str(self.folder)}

    def _configuration(self, is_logged_in=True):
        approvals = ['all', 'none'] if self.mode == 'oneshot' else ['all', 'none', 'ask']
        agents = (self._agent(approve, is_logged_in) for approve in approvals)
        return self._server_configuration() + ''.join(agents)

    def _server_configuration(self):
        return f"""\
[server]
listen = ["127.0.0.1:0"]
[store]
url = {_toml(f'sqlite:{self.folder / "sabir.db"}')}
"""

    def _agent(self, approve, is_logged_in):
        program = self.beside if self.beside and approve == 'none' else self.program
        environment = program.environment(self.model_url).items() if is_logged_in else {}.items()
        settings = {
            'id': _toml(approve),
            'kind': _toml(program.name),
            'mode': _toml(self.mode),
            'command': f'[{_toml(str(self._binary(program)))}]',
            'workspace': _toml(str(self.workspace)),
            'approve': _toml(approve),
            'timeout': _toml('120s'),
            'env': '{ ' + ', '.join(f'{name} = {_toml(value)}' for name, value in environment) + ' }',
        }
        if self.keep_warm:
            settings['keep_warm'] = _toml(self.keep_warm)
        settings |= {name: _toml(value) for name, value in self.more.items()}
        if program.model:
            settings['model'] = _toml(program.model)
        return '[[agent]]\n' + ''.join(f'{name} = {value}\n' for name, value in settings.items())


def _permissions(file):
    """The text of the file, or of Claude Code's memory, which notes a lot, only what its projects may do."""
    if file.name != '.claude.json':
        return file.read_text()
    projects = json.loads(file.read_text()).get('projects', {})
    return {path: project.get('allowedTools') for path, project in projects.items() if project.get('allowedTools')}


def _toml(text):
    """A basic string of TOML; JSON's escapes are among its own."""
    return json.dumps(text)

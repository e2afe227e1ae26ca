"""One page, block by block."""

import re

import markdown
import proxies
import shown
import units
from terminal import Terminal

# What a server prints last when it is ready.
READY = 'Ctrl-C stops it.'
SECONDS_TO_START = 240  # a first block may build the program

# Around a block: remember the first exit code that is not 0, and end with it.
WATCH = "set -o pipefail; first_failure=0; trap 'code=$?; [ $first_failure != 0 ] || first_failure=$code' ERR"
JUDGE = 'trap - ERR; set +o pipefail; (exit $first_failure)'


class Page:
    def __init__(self, stage, name, blocks):
        self.stage = stage
        self.name = name
        self.blocks = blocks
        self.terminals = []

    def run(self):
        # README speaks to somebody in a fresh clone; the other pages to somebody who has installed the program.
        folder = self.stage.root if self.name == 'README.md' else self.stage.home
        try:
            self._open(folder)
            for block in self.blocks:
                if block.is_run():
                    self._run(block)
        finally:
            for terminal in self.terminals:
                terminal.close()

    def _run(self, block):
        where = f'line {block.line}'
        if 'file' in block.options:
            self._save(block)
        elif block.language == 'sh':
            self._run_shell(block, where)
        else:
            for command, expected in markdown.commands(block):
                self._type(command, expected, where)

    def _run_shell(self, block, where):
        command = self._meant('\n'.join(block.lines))
        if is_server(command):
            self._serve(command, '', where)
            return
        # Every line runs, as if it was typed; the first that fails decides.
        code, printed = self.terminal.run(f'{WATCH}\n{command}\n{JUDGE}\n')
        expected = int(block.options.get('exit', '0'))
        assert code == expected, f'{where}: exit code {code}, not {expected}; it printed: {printed}'

    def _type(self, command, expected, where):
        command, expected = self._meant(command), self.stage.substituted(expected)
        expected = expected.replace('/home/you', str(self.stage.home))
        is_refused = any(line.startswith('sabir: ') for line in expected.splitlines())
        if is_server(command) and not is_refused:
            self._serve(command, expected, where)
            return
        code, printed = self.terminal.run(command)
        assert shown.matches(expected, printed), (
            f'{where}: `{command}` printed (exit code {code}): {shown.plain(printed)} -- the page shows: {expected}'
        )

    def _meant(self, command):
        """The command with the ports of this run."""
        return self.stage.substituted(without_cargo(command) if self.stage.args.without_cargo else command)

    def _serve(self, command, expected, where):
        """Starts a server in this terminal, in the place of one that had the same address, and opens a new terminal."""
        is_default = '--port' not in command and '--listen' not in command
        for other in self.terminals:
            if is_default and other.is_busy and other.has_default_address:
                other.interrupt()
        terminal = self.terminal
        terminal.has_default_address = is_default
        printed = terminal.serve(command, lambda printed: READY in printed, SECONDS_TO_START)
        assert shown.matches(expected or '...', printed, is_whole=False), (
            f'{where}: the server printed: {shown.plain(printed)} -- the page shows: {expected}'
        )
        self._open(terminal.folder)

    def _save(self, block):
        path = self.stage.place(block.options['file'], self.terminal.folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.stage.substituted(block.text)
        if block.language == 'nginx':
            proxies.start_nginx(self.stage, path, text)
        elif block.language == 'caddyfile':
            proxies.start_caddy(self.stage, path, text)
        elif block.language == 'ini':
            units.verify(self.stage, path, text)
        else:
            path.write_text(text)
            if text.startswith('#!'):
                path.chmod(0o755)

    def _open(self, folder):
        self.terminal = Terminal(folder, self.stage.environment(), self.stage.scratch)
        self.terminals.append(self.terminal)


# A command that stays: the program itself, or cargo that ends with it.
SERVER = re.compile(r'(^|&& )sabir (serve|proxy)\b[^&]*$')


def is_server(command):
    """Whether the last line of it serves, and stays in the foreground."""
    last = [line for line in command.splitlines() if line.strip() and not line.startswith('#')][-1:]
    return bool(last and SERVER.search(last[0].split(' #')[0]))


def without_cargo(command):
    """The command without what it builds, for a run with a binary that is there."""
    lines = [re.sub(r'^cargo [^&]*&& ', '', line) for line in command.splitlines()]
    return '\n'.join(line for line in lines if not line.startswith('cargo '))

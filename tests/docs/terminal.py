"""A terminal with bash in it: one command after the other in the same shell, with what each prints and how it ends.

What is printed goes to a pseudo terminal, so programs write as they do for a person. Commands come as files that the shell
reads in, so that they keep variables, functions and the working folder, and standard input stays empty.
"""

import os
import pty
import select
import signal
import subprocess
import threading
import time

# The driver: run a file, then say how it ended and where the shell is now.
DRIVER = """\
while read -r file <&3; do
  source "$file" </dev/null
  printf "%s %s\\n" "$?" "$PWD" >&4
  printf '\\037'
done"""
# Comes to the screen behind all that a command has printed.
END = '\x1f'
SECONDS_PER_COMMAND = 240
PAUSE = 0.03


class Terminal:
    def __init__(self, folder, environment, scratch):
        self.scratch = scratch
        self.folder = folder
        self.count = 0
        self.printed = ''
        self.is_busy = False
        self.has_default_address = False  # of the server that keeps it busy
        self.screen, inside = pty.openpty()
        commands_in, self.commands = os.pipe()
        self.answers, answers_out = os.pipe()
        os.set_inheritable(commands_in, True)
        os.set_inheritable(answers_out, True)
        driver = f'exec 3<&{commands_in} 4>&{answers_out} {commands_in}<&- {answers_out}>&-; {DRIVER}'
        self.shell = subprocess.Popen(
            ['bash', '--noprofile', '--norc', '-c', driver],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=inside,
            stderr=inside,
            pass_fds=(commands_in, answers_out),
            start_new_session=True,
        )
        for descriptor in (inside, commands_in, answers_out):
            os.close(descriptor)
        # A screen that nobody reads fills up, and holds up whoever writes to it.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def run(self, command):
        """Runs the command to its end: exit code and what it printed."""
        self.start(command)
        answer = self._until(lambda: self._answer(), SECONDS_PER_COMMAND, command)
        code, _, self.folder = answer.strip().partition(' ')
        self._until(lambda: END in self.printed, SECONDS_PER_COMMAND, command)
        return int(code), self.printed.split(END)[0]

    def start(self, command):
        """Types the command and does not wait for it."""
        self.count += 1
        file = self.scratch / f'{id(self)}-{self.count}.sh'
        file.write_text(command)
        self.printed = ''
        os.write(self.commands, f'{file}\n'.encode())

    def serve(self, command, is_ready, seconds):
        """Starts a command that stays, and returns when it has printed what it should."""
        self.is_busy = True
        self.start(command)

        def look():
            if self._answer():
                raise AssertionError(f'it ended and printed: {self.printed}')
            return is_ready(self.printed)

        self._until(look, seconds, command)
        self.folder = os.readlink(f'/proc/{self.shell.pid}/cwd')
        return self.printed

    def interrupt(self):
        """Ctrl-C: SIGINT to all that runs in this terminal, and a wait for the prompt."""
        for pid in _children(self.shell.pid):
            os.kill(pid, signal.SIGINT)
        self._until(lambda: self._answer(), 30, 'Ctrl-C')
        self.is_busy = False

    def close(self):
        os.close(self.commands)
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.shell.wait()
        self.reader.join(5)
        os.close(self.screen)
        os.close(self.answers)

    def _until(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while not (outcome := condition()):
            assert self.shell.poll() is None, f'the shell has gone after `{what}`: {self.printed}'
            assert time.monotonic() < deadline, f'not over after {seconds} s: `{what}`; it printed: {self.printed}'
            time.sleep(PAUSE)
        return outcome

    def _answer(self):
        """The line that the driver writes when a command is over."""
        if not select.select([self.answers], [], [], 0)[0]:
            return ''
        line = b''
        while not line.endswith(b'\n'):
            line += os.read(self.answers, 1)
        return line.decode()

    def _read(self):
        while True:
            try:
                piece = os.read(self.screen, 65536)
            except OSError:
                return  # everybody has closed it
            if not piece:
                return
            # What a server has logged for long is of no use.
            self.printed = (self.printed + piece.decode(errors='replace'))[-200_000:]


def _children(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        return [int(child) for child in file.read().split()]

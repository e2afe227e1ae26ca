"""Processes, as `/proc` shows them: who still works below a folder, and an end to all of them.

Looking for children is not enough. A program may have left its group or outlived its parent; but what it was started
with still names the folder.
"""

import os
import pathlib
import select
import signal
import time

PAUSE = 0.05


def until_gone(folder, known, seconds):
    """Waits for all processes of the folder but the known ones, and says which are left."""
    deadline = time.monotonic() + seconds
    while left := {pid: words for pid, words in of_folder(folder).items() if pid not in known}:
        if time.monotonic() > deadline:
            break
        time.sleep(PAUSE)
    return left


def kill_all(folder, seconds=5):
    """Ends the processes of the folder, and those that they start meanwhile."""
    deadline = time.monotonic() + seconds
    while (left := of_folder(folder)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was quicker
        time.sleep(PAUSE)


def of_folder(folder):
    """Process numbers to command lines of all that work in the folder, or were started with it in their words."""
    found = {}
    mark = os.fsencode(folder)
    for entry in pathlib.Path('/proc').iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / 'cmdline').read_bytes()
            # A process that has ended and waits to be noticed has neither words nor a folder.
            if mark in words or mark in (entry / 'environ').read_bytes() or _works_in(entry, mark):
                found[int(entry.name)] = words.replace(b'\0', b' ').decode(errors='replace').strip()[:120]
        except OSError:
            continue  # it ended while we looked, or belongs to somebody else
    return found


def first_line(child, seconds):
    """The first line that the child prints, or nothing if it does not come in time."""
    deadline = time.monotonic() + seconds
    line = b''
    while not line.endswith(b'\n'):
        ready, _, _ = select.select([child.stdout], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(child.stdout.fileno(), 4096) if ready else b''
        if not piece:
            return None
        line += piece
    return line.decode().strip()


def _works_in(entry, mark):
    return os.fsencode(os.readlink(entry / 'cwd')).startswith(mark)

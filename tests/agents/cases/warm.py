"""A program stays for the next message of its context, and a dead one is started again."""

import os
import signal

import processes
from expect import equal, holds

MODES = ('duplex', 'acp')


def the_next_message_of_a_context_costs_no_start(stage):
    stage.serve()
    first = stage.client.send('all', 'scenario:text please')
    equal(f'state of the first task, with {first.says!r}', first.state, 'completed')
    guards = _guards(stage)
    equal('programs that wait', len(guards), 1)
    second = stage.client.send('all', 'scenario:recall please', contextId=first.context)
    equal('answer', second.answer.strip(), 'I remember these prompts: text, recall.')
    equal('the same program waits', _guards(stage), guards)
    stage.client.send('all', 'scenario:text please')
    holds('another context has another program', guards < _guards(stage), _guards(stage))


def a_waiting_program_that_is_killed_is_started_again(stage):
    stage.serve()
    first = stage.client.send('all', 'scenario:text please')
    for pid in _started(stage).keys() - _guards(stage):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended with its parent
    second = stage.client.send('all', 'scenario:recall please', contextId=first.context)
    equal(f'state of the second task, with {second.says!r}', second.state, 'completed')
    equal('answer', second.answer.strip(), 'I remember these prompts: text, recall.')


def _started(stage):
    """All that the server has started."""
    known = (stage.server.pid, stage.model.pid)
    return {pid: words for pid, words in processes.of_folder(stage.folder).items() if pid not in known}


def _guards(stage):
    return {pid for pid, words in _started(stage).items() if '__guard' in words}

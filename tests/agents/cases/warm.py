"""A program stays for the next message of its context, and a dead one is started again."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import processes
from expect import equal, holds

MODES = ('duplex', 'acp')


def the_next_message_of_a_context_uses_the_warm_program(stage):
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


def a_command_in_the_background_ends_with_its_turn(stage):
    stage.serve()
    first = stage.client.send('all', 'scenario:background please')
    equal(f'state of the first task, with {first.says!r}', first.state, 'completed')
    written = stage.workspace / 'background.txt'
    holds('the command has run', written.exists(), first.value)
    # The task is over, and so is its turn in the folder.
    left = {pid: words for pid, words in _started(stage).items() if written.name in words}
    equal('commands that still run', left, {})
    length = written.stat().st_size
    second = stage.client.send('all', 'scenario:recall please', contextId=first.context)
    equal('answer', second.answer.strip(), 'I remember these prompts: background, recall.')
    equal('what the command has written since', written.stat().st_size - length, 0)


# Gemini ends what a command has left with its tool.
a_command_in_the_background_ends_with_its_turn.only = lambda program, mode: program.name != 'gemini'


def changed_settings_need_another_program(stage):
    stage.serve()
    first = stage.client.send('all', 'scenario:text please')
    guards = _guards(stage)
    equal('programs that wait', len(guards), 1)
    stage.put({'.claude/settings.json': '{"permissions": {"deny": ["WebFetch"]}}'})
    second = stage.client.send('all', 'scenario:recall please', contextId=first.context)
    equal('answer', second.answer.strip(), 'I remember these prompts: text, recall.')
    equal('programs that wait', len(_guards(stage)), 1)
    holds('it is another one', not guards & _guards(stage), guards)


def an_ended_program_is_gone_before_the_next_begins(stage):
    stage.serve(keep_warm='50ms')
    first = stage.client.send('all', 'scenario:text please')
    with ThreadPoolExecutor() as pool:
        sending = pool.submit(stage.client.send, 'all', 'scenario:recall please', contextId=first.context)
        counts = {len(_guards(stage))}
        while not sending.done():
            counts.add(len(_guards(stage)))
    equal('answer', sending.result().answer.strip(), 'I remember these prompts: text, recall.')
    holds('never two programs in one session', max(counts) == 1, counts)


def _started(stage):
    """All that the server has started."""
    known = (stage.server.pid, stage.model.pid)
    return {pid: words for pid, words in processes.of_folder(stage.folder).items() if pid not in known}


def _guards(stage):
    return {pid for pid, words in _started(stage).items() if '__guard' in words}

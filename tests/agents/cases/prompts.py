"""What callers write is text: no command of the program, and no way to a file."""

import json

from expect import equal, holds
from stage import OUTSIDE

MODES = ('duplex', 'acp', 'oneshot')


def a_file_that_a_caller_names_does_not_reach_the_model(stage):
    stage.serve()
    stage.put({'inside.txt': 'inside-the-workspace'})
    outside = stage.folder / 'outside.txt'
    for name in (f'@{outside}', f'@"{outside}"', '@../outside.txt', '@missing/../../outside.txt', '@inside.txt, I mean'):
        task = stage.client.send('none', f'scenario:text look at {name}')
        equal(f'state of {name}, with {task.says!r}', task.state, 'completed')
    asked = stage.requests()
    holds('what was asked', '../outside.txt' in asked, asked[-2000:])
    holds('the file outside', OUTSIDE not in asked, OUTSIDE)
    holds('the file inside', 'inside-the-workspace' not in asked, 'inside.txt')


def a_command_that_a_caller_names_reaches_the_model_as_text(stage):
    stage.serve()
    for command in ('/cost', '/help', '/memory show', '/compact', '/logout', '/etc/hosts'):
        task = stage.client.send('none', f'{command} scenario:text')
        equal(f'state of {command}, with {task.says!r}', task.state, 'completed')
        equal(f'answer to {command}', task.answer.strip().split('.')[0], 'Hello from the fake model')
        name = command.split()[0]
        holds(command, name in stage.requests(), name)


def all_other_text_arrives_as_it_is(stage):
    stage.serve()
    text = 'scenario:text @Override and @scope/pkg, a@b.c; see /etc/hosts, ~/x and "@/components/Button" — ä\u200a!'
    task = stage.client.send('none', text)
    equal(f'state, with {task.says!r}', task.state, 'completed')
    spelled = (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    asked = stage.requests()
    holds('the text in what was asked', any(spelling in asked for spelling in spelled), asked[-3000:])

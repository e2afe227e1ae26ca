"""Contexts: a later task resumes the program's own session."""

from expect import equal, holds

MODES = ('duplex', 'acp')


def a_second_task_of_a_context_remembers_the_first(stage):
    stage.serve()
    _remembers(stage, _first(stage))


def a_context_is_remembered_after_a_restart(stage):
    stage.serve()
    first = _first(stage)
    stage.stop_server()
    stage.serve()
    equal('state of the first task after the restart', stage.client.get(first.id).state, 'completed')
    _remembers(stage, first)


def _first(stage):
    task = stage.client.send('all', 'scenario:text please')
    equal(f'state of the first task, with {task.says!r}', task.state, 'completed')
    return task


def _remembers(stage, first):
    task = stage.client.send('all', 'scenario:recall please', contextId=first.context)
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('another task', task.id != first.id, task.id)
    equal('context', task.context, first.context)
    # The model names the prompts that the program has sent it, in their order.
    equal('answer', task.answer.strip(), 'I remember these prompts: text, recall.')

"""Permissions that callers give: they end with the session of the program at the latest."""

from expect import equal, holds

MODES = ('duplex', 'acp')


def what_a_caller_always_allows_is_allowed_to_nobody_else(stage):
    stage.serve()
    first = stage.client.send('all', 'scenario:text please')
    equal(f'state of a first task, with {first.says!r}', first.state, 'completed')
    before = stage.permissions()
    task = stage.client.send('ask', f'scenario:{stage.program.asking} please')
    equal(f'state before the answer, with {task.says!r}', task.state, 'input-required')
    task = stage.client.send('ask', 'always', taskId=task.id)
    equal(f'state after the answer, with {task.says!r}', task.state, 'completed')
    holds('the tool ran', stage.tool_ran.exists(), task.value)
    stage.tool_ran.unlink()
    equal('what the program keeps of permissions', stage.permissions(), before)
    other = stage.client.send('none', f'scenario:{stage.program.asking} please')
    holds('no tool of the agent that may use none', not stage.tool_ran.exists(), other.value)
    again = stage.client.send('ask', f'scenario:{stage.program.asking} please')
    equal(f'state of the next conversation, with {again.says!r}', again.state, 'input-required')
    stage.client.cancel(again.id)

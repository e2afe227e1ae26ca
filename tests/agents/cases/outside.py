"""Files outside the workspace."""

from expect import equal, holds
from stage import OUTSIDE

MODES = ('duplex', 'acp')


def a_file_outside_the_workspace_is_not_read_without_a_question(stage):
    stage.serve()
    task = stage.client.send('ask', 'scenario:outside please')
    equal(f'state, with {task.says!r}', task.state, 'input-required')
    # The whole command, not what the program thinks that it comes down to.
    holds('the question', 'cd .. && cat outside.txt | tee /dev/null' in task.says, task.says)
    task = stage.client.send('ask', 'no', taskId=task.id)
    equal(f'state after the answer, with {task.says!r}', task.state, 'completed')
    holds('the model has not seen the file', OUTSIDE not in stage.requests(), task.value)


def an_agent_that_may_use_no_tools_reads_no_file_outside(stage):
    stage.serve()
    task = stage.client.send('none', 'scenario:outside please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the model has not seen the file', OUTSIDE not in stage.requests(), task.value)


# Its sandbox lets commands read everything, and without it no command could run at all.
an_agent_that_may_use_no_tools_reads_no_file_outside.only = lambda program, mode: program.name != 'codex'

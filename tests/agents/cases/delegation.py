"""A program asks another agent of the server, which runs a program of another kind, in the name of its task."""

from expect import equal, holds
from programs import PROGRAMS

MODES = ('duplex', 'oneshot')
# Whom each program asks.
ASKED = {'claude-code': 'codex', 'codex': 'claude-code'}


def a_program_asks_another_agent(stage):
    _serve(stage)
    task = stage.client.send('all', 'scenario:delegate please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the answer of the other agent', 'Hello from the fake model' in task.answer, task.answer)
    (child,) = stage.client.tasks('none')
    equal('state of the child', child.state, 'completed')
    equal('its parent', child.value['history'][0].get('referenceTaskIds'), [task.id])
    holds('the credential is shown to nobody', 'sabir_d_' not in str(task.value) + stage.requests(), task.value)


def later_messages_of_a_context_ask_in_the_name_of_their_own_tasks(stage):
    _serve(stage)
    context = {}
    parents = []
    for _ in range(2):
        task = stage.client.send('all', 'scenario:delegate please', **context)
        equal(f'state, with {task.says!r}', task.state, 'completed')
        context = {'contextId': task.context}
        parents.append(task.id)
    named = [child.value['history'][0].get('referenceTaskIds') for child in stage.client.tasks('none')]
    equal('the parents that children name', sorted(named), sorted([parent] for parent in parents))


def a_canceled_task_leaves_no_process_of_either(stage):
    _serve(stage)
    parent, child = _both_at_work(stage)
    equal('state of the canceled task', stage.client.cancel(parent).state, 'canceled')
    child = stage.client.until(child, 'canceled')
    equal('state of the child', child.state, 'canceled')
    holds('the child says why', 'which has delegated this one' in child.says, child.says)
    stage.nothing_is_left()


def a_server_that_is_killed_leaves_nothing_of_either(stage):
    _serve(stage)
    parent, child = _both_at_work(stage)
    stage.kill_server()
    _serve(stage)
    equal('state of the parent after the restart', stage.client.until(parent, 'failed').state, 'failed')
    ended = stage.client.until(child, 'failed')
    holds('the child has ended', ended.state in ('failed', 'canceled'), ended.state)
    again = stage.client.send('all', 'scenario:delegate please')
    equal(f'state of the next task, with {again.says!r}', again.state, 'completed')


def _serve(stage):
    stage.serve_beside(PROGRAMS[ASKED[stage.program.name]], delegate=True)


def _both_at_work(stage):
    frames = stage.client.stream('all', 'scenario:delegateslow please')
    parent = next(frames).task
    for _ in frames:
        children = stage.client.tasks('none')
        if children and stage.client.until(children[0].id, 'working').state == 'working':
            return parent, children[0].id
    raise AssertionError('the task ended before it had a child')

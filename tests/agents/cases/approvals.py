"""Tools that need permission: the caller is asked, answers, and hears the rest on the same stream."""

import json

from expect import equal, holds

MODES = ('duplex', 'acp')


def a_tool_that_is_allowed_runs(stage):
    task = _answered(stage, 'y')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the file of the tool is there', stage.tool_ran.exists(), task.value)


def a_tool_that_is_refused_does_not_run(stage):
    task = _answered(stage, 'no')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the file of the tool is not there', not stage.tool_ran.exists(), task.value)


def a_program_that_nobody_answers_sleeps_until_it_is_answered(stage):
    stage.serve(hibernate_after='1s')
    task = stage.client.send('ask', f'scenario:{stage.program.asking} please')
    equal(f'state, with {task.says!r}', task.state, 'input-required')
    if stage.program.sleeps:
        stage.nothing_is_left()
    task = stage.client.send('ask', 'y', taskId=task.id)
    # It has asked for the same again, and got the answer that was given before.
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the file of the tool is there', stage.tool_ran.exists(), task.value)


def a_question_survives_a_restart_of_the_server(stage):
    _answered_after_a_restart(stage, stage.kill_server, 'y', runs=1)


def a_question_outlives_its_server_and_is_refused(stage):
    _answered_after_a_restart(stage, stage.kill_server, 'no', runs=0)


def a_question_outlives_a_server_that_was_stopped(stage):
    _answered_after_a_restart(stage, stage.stop_server, 'y', runs=1)


def a_question_in_a_worktree_outlives_its_server(stage):
    stage.commit('a first commit')
    task = _asked(stage, isolation='worktree')
    stage.kill_server()
    stage.serve(isolation='worktree')
    task = stage.client.send('ask', 'y', taskId=task.id)
    equal(f'state, with {task.says!r}', task.state, 'completed')
    changes = [artifact['parts'][0]['text'] for artifact in task.artifacts if artifact.get('name') == 'changes']
    holds('a patch in which the tool ran once', ''.join(changes).count('+fake-tool-ran') == 1, task.value)


def a_question_that_would_not_be_asked_again_fails_with_its_server(stage):
    for end in (stage.kill_server, stage.stop_server):
        task = _asked(stage)
        end()
        stage.serve()
        task = stage.client.until(task.id, 'failed')
        equal(f'state after the start, with {task.says!r}', task.state, 'failed')
        holds('what to do', task.says.endswith('send the request again'), task.says)
        holds('no tool has run', not stage.tool_ran.exists(), task.value)
        stage.stop_server()


def _asks_again(program, _mode):
    return program.sleeps


a_question_survives_a_restart_of_the_server.only = _asks_again
a_question_outlives_its_server_and_is_refused.only = _asks_again
a_question_outlives_a_server_that_was_stopped.only = _asks_again
a_question_in_a_worktree_outlives_its_server.only = _asks_again
a_question_that_would_not_be_asked_again_fails_with_its_server.only = lambda program, _mode: not program.sleeps


def _asked(stage, **settings):
    """A task that waits for its answer."""
    stage.serve(**settings)
    task = stage.client.send('ask', f'scenario:{stage.program.asking} please')
    equal(f'state, with {task.says!r}', task.state, 'input-required')
    return task


def _answered_after_a_restart(stage, end, answer, runs):
    """The server ends while the question is open, and the next one gets the answer."""
    task = _asked(stage)
    end()
    stage.serve()
    equal('state after the start', stage.client.get(task.id).state, 'input-required')
    before = stage.requests()
    task = stage.client.send('ask', answer, taskId=task.id)
    equal(f'state, with {task.says!r}', task.state, 'completed')
    equal('how often the tool has run', stage.tool_runs(), runs)
    asked = stage.requests()[len(before) :].replace(' ', '')
    holds('the model was asked again', asked, before[-2000:])
    holds('the answer was no prompt', f'"text":"{answer}"' not in asked, asked[-2000:])


def _answered(stage, answer):
    """The task after its one question was answered."""
    stage.serve()
    states = []
    for frame in stage.client.stream('ask', f'scenario:{stage.program.asking} please'):
        if frame.state is None or states[-1:] == [frame.state]:
            continue
        states.append(frame.state)
        if frame.state == 'input-required':
            _is_a_question(stage, frame)
            holds('nothing has run before the answer', not stage.tool_ran.exists(), frame.value)
            stage.client.send('ask', answer, taskId=frame.task)
    equal('states', states, ['submitted', 'working', 'input-required', 'working', 'completed'])
    return stage.client.get(frame.task)


def _is_a_question(stage, frame):
    holds('a question in words', frame.says, frame.value)
    equal('data parts of the question', len(frame.data), 1)
    question = frame.data[0]
    kinds = {choice['kind'] for choice in question['choices']}
    holds('a choice that allows', kinds & {'allow_once', 'allow_always'}, kinds)
    holds('a choice that refuses', kinds & {'reject_once', 'reject_always'}, kinds)
    shown = json.dumps(question.get('input')) if stage.program.shows_input else frame.says
    holds('what the tool would do', 'tool-ran.txt' in shown, question)

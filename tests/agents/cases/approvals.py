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

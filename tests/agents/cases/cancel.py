"""Canceling in the middle of an answer."""

from expect import equal, holds

MODES = ('duplex', 'acp')


def a_canceled_task_leaves_no_process(stage):
    stage.serve()
    # The model would go on for a minute.
    frames = stage.client.stream('all', 'scenario:slow please')
    first = next((frame for frame in frames if 'tick' in frame.wrote), None)
    holds('a first piece of the answer', first is not None, first)
    equal('state of the canceled task', stage.client.cancel(first.task).state, 'canceled')
    stage.nothing_is_left()
    states = [frame.state for frame in frames if frame.state]
    equal('last state on the stream', states[-1:], ['canceled'])
    equal('state on get', stage.client.get(first.task).state, 'canceled')

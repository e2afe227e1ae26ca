"""Plain answers, and models that refuse."""

from expect import equal, holds

MODES = ('duplex', 'acp', 'oneshot')

COST = 'https://proto-labs.ai/a2a/ext/cost-v1'


def a_plain_answer_completes_the_task_and_tells_what_it_used(stage):
    stage.serve()
    task = stage.client.send('all', 'scenario:text please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    equal('answer', task.answer.strip(), 'Hello from the fake model. This reply comes in several deltas.')
    costs = [artifact['metadata'][COST] for artifact in task.artifacts if COST in artifact.get('metadata', {})]
    equal('artifacts with a cost', len(costs), 1)
    # The model counts 1200, and 200 of them from its cache, which some programs count apart.
    holds('input tokens', costs[0]['usage']['input_tokens'] >= 1000, costs[0])
    holds('output tokens', costs[0]['usage']['output_tokens'] >= 1, costs[0])


def a_model_that_refuses_is_told(stage):
    stage.serve()
    task = stage.client.send('all', 'scenario:error please')
    equal(f'state, with {task.says!r}', task.state, 'failed')
    told = task.says if task.state == 'failed' else task.answer
    holds('the reason', 'fake model refuses this request' in told, task.value)

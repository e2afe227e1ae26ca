"""Agents are models."""

from openai import NotFoundError

from stage import failure, say


def agents_are_listed(stage):
    models = {model.id: model for model in stage.client().models.list()}
    assert set(models) == {'demo', 'asks'}, models
    assert models['asks'].owned_by == 'sabir' and models['asks'].object == 'model', models['asks']
    assert models['asks'].description == 'Asks first', models['asks']


def one_agent_is_found_by_its_name(stage):
    client = stage.client()
    for name in ('demo', 'sabir/demo'):
        assert client.models.retrieve(name).id == 'demo'
        assert say(client, 'hello', model=name) == 'echo: hello'
    error = failure(NotFoundError, lambda: client.models.retrieve('nobody'))
    assert (error.code, error.param) == ('model_not_found', 'model'), error

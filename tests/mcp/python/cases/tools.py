"""What a host finds: the tools, their schemas, and what is refused."""

from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from stage import data, failure, words

TOOLS = ['list_agents', 'ask_agent', 'wait_task', 'answer_task', 'cancel_task', 'get_task']
CODING = ['coding_agent_run', 'coding_agent_poll', 'coding_agent_result', 'coding_agent_cancel', 'coding_agent_info']


async def every_tool_is_listed_with_a_valid_schema(stage):
    async with stage.client() as client:
        tools = (await client.list_tools()).tools
    # Both agents have a tool of their own.
    names = [tool.name for tool in tools]
    assert sorted(names) == sorted([*TOOLS, 'ask_demo', 'ask_asks', *CODING]), names
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema['type'] == 'object', tool
        assert tool.description and tool.title, tool
        assert set(tool.input_schema.get('required', [])) <= set(tool.input_schema['properties']), tool
    by_name = {tool.name: tool for tool in tools}
    assert 'Asks first' in by_name['ask_asks'].description
    assert by_name['get_task'].annotations.read_only_hint and not by_name['cancel_task'].annotations.read_only_hint
    schema = Draft202012Validator(by_name['ask_agent'].input_schema)
    assert schema.is_valid({'message': 'hello', 'wait_seconds': 0})
    assert not schema.is_valid({'mesage': 'hello'}) and not schema.is_valid({'message': 'hello', 'wait_seconds': -1})


async def the_server_says_who_it_is(stage):
    async with stage.client() as client:
        assert client.server_info.name == 'sabir', client.server_info
        assert client.server_capabilities.tools is not None and client.server_capabilities.resources is not None
        assert 'list_agents' in client.instructions


async def agents_are_listed(stage):
    async with stage.client() as client:
        agents = {agent['id']: agent for agent in data(await client.call_tool('list_agents'))['agents']}
    assert sorted(agents) == ['asks', 'demo'], agents
    assert agents['demo']['default'] and not agents['asks']['default'], agents
    assert agents['asks']['description'] == 'Asks first', agents


async def a_wrong_argument_is_named_for_the_model(stage):
    async with stage.client() as client:
        for tool, arguments, expected in [
            ('ask_agent', {}, 'message'),
            ('ask_agent', {'mesage': 'hello'}, 'mesage'),
            ('ask_agent', {'message': 7}, 'message'),
            ('ask_agent', {'message': 'hello', 'wait_seconds': 'soon'}, 'wait_seconds'),
            ('ask_agent', {'message': 'hello', 'wait_seconds': -1}, 'wait_seconds'),
            ('ask_agent', {'message': 'hello', 'agent': 'nobody'}, 'nobody'),
            ('ask_demo', {'message': 'hello', 'agent': 'demo'}, 'agent'),
            ('wait_task', {}, 'task'),
            ('get_task', {'task': 'no-such-task'}, 'no-such-task'),
            ('cancel_task', {'task': 'no-such-task'}, 'no-such-task'),
            ('answer_task', {'task': 'no-such-task'}, 'answer'),
            ('coding_agent_poll', {}, 'jobId'),
            ('coding_agent_poll', {'jobId': 'no-such-job'}, 'no-such-job'),
        ]:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and expected in words(result), f'{tool} {arguments}: {result}'


async def an_unknown_tool_is_an_error_of_the_protocol(stage):
    async with stage.client() as client:
        for name in ('no_such_tool', 'ask_nobody'):
            error = await failure(client.call_tool(name, {'message': 'hello'}))
            assert isinstance(error, MCPError) and error.code == -32602 and name in error.message, repr(error)


async def resources_are_described_by_a_template(stage):
    async with stage.client() as client:
        assert (await client.list_resources()).resources == []
        templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ['sabir://tasks/{task}/artifacts/{artifact}'], templates

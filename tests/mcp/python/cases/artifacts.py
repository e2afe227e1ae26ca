"""What tasks make: content of results, and resources."""

import base64
import json

from mcp.shared.exceptions import MCPError

from stage import data_of, failure, words


async def a_file_comes_along_and_is_read_as_a_resource(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'file'})
        [artifact] = data_of(result, 'completed')['artifacts']
        [block] = result.content[1:]
        assert block.type == 'resource' and str(block.resource.uri) == artifact['uri'], block
        assert block.resource.mime_type == 'text/plain' and base64.b64decode(block.resource.blob) == b'Hello file', block
        [contents] = (await client.read_resource(artifact['uri'])).contents
        assert contents.mime_type == 'text/plain' and base64.b64decode(contents.blob) == b'Hello file', contents


async def a_url_is_a_link(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'url'})
        [artifact] = data_of(result, 'completed')['artifacts']
        [block] = result.content[1:]
        assert block.type == 'resource_link' and str(block.uri) == 'https://example.com/output.txt', block
        assert block.name == 'output.txt' and block.mime_type == 'text/plain', block
        [contents] = (await client.read_resource(artifact['uri'])).contents
        assert contents.text == 'https://example.com/output.txt', contents


async def data_is_json(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'data'})
        [artifact] = data_of(result, 'completed')['artifacts']
        assert json.loads(result.content[1].text) == {'key': 'value', 'count': 42}, result
        [contents] = (await client.read_resource(artifact['uri'])).contents
        assert contents.mime_type == 'application/json', contents
        assert json.loads(contents.text) == {'key': 'value', 'count': 42}, contents


async def words_are_a_resource_too(stage):
    async with stage.client() as client:
        result = await client.call_tool('ask_agent', {'message': 'héllo wörld'})
        [artifact] = data_of(result, 'completed')['artifacts']
        assert words(result) == 'echo: héllo wörld', result
        [contents] = (await client.read_resource(artifact['uri'])).contents
        assert contents.text == 'echo: héllo wörld' and str(contents.uri) == artifact['uri'], contents


async def an_unknown_resource_is_an_error_of_the_protocol(stage):
    async with stage.client() as client:
        task = data_of(await client.call_tool('ask_agent', {'message': 'hello'}), 'completed')['task']
        for uri in (f'sabir://tasks/{task}/artifacts/none', 'sabir://tasks/none/artifacts/none', 'file:///etc/passwd'):
            error = await failure(client.read_resource(uri))
            assert isinstance(error, MCPError) and error.code == -32602, f'{uri}: {error!r}'

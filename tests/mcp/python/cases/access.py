"""A server that asks for credentials."""

import urllib.error

from stage import CREDENTIALS, TOKEN, data, failure, words


async def without_a_token_nothing_is_answered(stage):
    server = stage.own_server(CREDENTIALS)
    for token in (None, 'sabir_wrong-0123456789abcdef012345678'):

        async def connect():
            async with stage.client(server, token=token) as client:
                await client.list_tools()

        error = await failure(connect())
        assert not isinstance(error, AssertionError), error
        headers = {'Authorization': f'Bearer {token}'} if token else {}
        reply = server.post({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}, headers)
        assert reply.status == 401, (reply.status, reply.body)
        assert 'Bearer' in reply.headers['WWW-Authenticate'], dict(reply.headers)


async def with_a_token_the_tools_work(stage):
    server = stage.own_server(CREDENTIALS)
    async with stage.client(server, token=TOKEN) as client:
        assert 'ask_demo' in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool('ask_agent', {'message': 'hello'})
        assert words(result) == 'echo: hello', result
        task = data(result)['task']
    # The task is the caller's.
    try:
        server.call(f'/tasks/{task}')
    except urllib.error.HTTPError as error:
        with error:
            assert error.code == 401, error
    else:
        raise AssertionError('anybody reads it')

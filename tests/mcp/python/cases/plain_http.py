"""The door without an SDK: what HTTP says of right and wrong requests."""

import http.client
import json

import anyio

from stage import MODERN, PATIENCE, in_state

LEGACY = ('2025-03-26', '2025-06-18', '2025-11-25')
META = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': {'name': 'plain', 'version': '1'},
    'io.modelcontextprotocol/clientCapabilities': {},
}


def _request(method, params=None, meta=META):
    return {'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': {'_meta': meta, **(params or {})}}


def _headers(method, name=None, version=MODERN):
    headers = {'MCP-Protocol-Version': version, 'Mcp-Method': method}
    return {**headers, 'Mcp-Name': name} if name else headers


def _initialize(version, capabilities=None):
    params = {'protocolVersion': version, 'capabilities': capabilities or {}, 'clientInfo': {'name': 'plain', 'version': '1'}}
    return {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': params}


def _refused(reply, status, code):
    assert reply.status == status, f'{reply.status} {reply.body}'
    error = reply.json()['error']
    assert error['code'] == code and error['message'], error
    return error


async def a_modern_request_needs_no_session(stage):
    reply = stage.server.post(_request('server/discover'), _headers('server/discover'))
    assert reply.status == 200 and MODERN in reply.json()['result']['supportedVersions'], reply.body
    assert 'Mcp-Session-Id' not in reply.headers
    call = _request('tools/call', {'name': 'ask_agent', 'arguments': {'message': 'hello'}})
    result = stage.server.post(call, _headers('tools/call', 'ask_agent')).json()
    assert result['id'] == 7 and result['result']['resultType'] == 'complete', result
    assert result['result']['content'][0] == {'type': 'text', 'text': 'echo: hello'}, result


async def a_client_that_takes_json_alone_gets_the_response_alone(stage):
    call = _request('tools/call', {'name': 'ask_agent', 'arguments': {'message': 'slow 1 hello'}})
    headers = {**_headers('tools/call', 'ask_agent'), 'Accept': 'application/json'}
    reply = stage.server.post(call, headers)
    assert reply.headers['Content-Type'] == 'application/json', dict(reply.headers)
    assert reply.json()['result']['structuredContent']['answer'] == 'echo: slow 1 hello', reply.body


async def headers_that_do_not_repeat_the_body_are_refused(stage):
    call = _request('tools/call', {'name': 'ask_agent', 'arguments': {'message': 'hello'}})
    for headers in (
        _headers('tools/call', 'get_task'),
        _headers('tools/call'),
        _headers('tools/list', 'ask_agent'),
        {'MCP-Protocol-Version': MODERN, 'Mcp-Name': 'ask_agent'},
        _headers('tools/call', 'ask_agent', '2025-11-25'),
    ):
        _refused(stage.server.post(call, headers), 400, -32020)


async def an_unknown_version_is_refused_with_those_that_are_known(stage):
    meta = {**META, 'io.modelcontextprotocol/protocolVersion': '1900-01-01'}
    request = _request('tools/list', meta=meta)
    error = _refused(stage.server.post(request, _headers('tools/list', version='1900-01-01')), 400, -32022)
    assert error['data']['requested'] == '1900-01-01' and {MODERN, *LEGACY} <= set(error['data']['supported']), error
    plain = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}
    _refused(stage.server.post(plain, {'MCP-Protocol-Version': '1900-01-01'}), 400, -32022)


async def what_the_modern_era_requires_is_required(stage):
    version = {'io.modelcontextprotocol/protocolVersion': MODERN}
    for meta in ({}, version):
        _refused(stage.server.post(_request('tools/list', meta=meta), _headers('tools/list')), 400, -32602)
    _refused(stage.server.post(_request('no/such'), _headers('no/such')), 404, -32601)
    _refused(stage.server.post(_request('initialize'), _headers('initialize')), 404, -32601)


async def every_legacy_version_has_its_session(stage):
    for version in LEGACY:
        reply = stage.server.post(_initialize(version))
        result = reply.json()['result']
        assert reply.status == 200 and result['protocolVersion'] == version, result
        session = {'Mcp-Session-Id': reply.headers['Mcp-Session-Id'], 'MCP-Protocol-Version': version}
        note = stage.server.post({'jsonrpc': '2.0', 'method': 'notifications/initialized'}, session)
        assert note.status == 202 and note.body == b'', (note.status, note.body)
        assert stage.server.post({'jsonrpc': '2.0', 'id': 2, 'method': 'ping'}, session).json()['result'] == {}
        params = {'name': 'ask_agent', 'arguments': {'message': 'hello'}}
        call = {'jsonrpc': '2.0', 'id': 'three', 'method': 'tools/call', 'params': params}
        answer = stage.server.post(call, session).json()
        assert answer['id'] == 'three' and answer['result']['content'][0]['text'] == 'echo: hello', answer
        assert 'resultType' not in answer['result'], answer
        deleted = stage.server.post(None, session, 'DELETE')
        assert deleted.status in (200, 204), deleted.status
    # A version that is not known is answered with one that is.
    assert stage.server.post(_initialize('1900-01-01')).json()['result']['protocolVersion'] in LEGACY


async def an_unknown_session_is_not_found(stage):
    for session in ('no-such-session', '2025-11-25.forms.1', '0b2b5f2e-5d0e-4b0c-9d4f-000000000000'):
        reply = stage.server.post({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}, {'Mcp-Session-Id': session})
        assert reply.status == 404, f'{session}: {reply.status} {reply.body}'


async def there_is_no_stream_by_get(stage):
    reply = stage.server.post(None, {'Accept': 'text/event-stream'}, 'GET')
    assert reply.status == 405 and 'POST' in reply.headers['Allow'], (reply.status, dict(reply.headers))


async def malformed_messages_are_refused(stage):
    for body, code in [
        (b'', -32700),
        (b'{', -32700),
        (b'\xff', -32700),
        (b'{"a":' + b'[' * 100_000, -32700),
        (b'7', -32600),
        (b'{}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    ]:
        _refused(stage.server.post(body), 400, code)


async def a_page_of_another_origin_is_forbidden(stage):
    request = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}
    for origin in ('https://evil.example', 'null'):
        reply = stage.server.post(request, {'Origin': origin})
        assert reply.status == 403, f'{origin}: {reply.status} {reply.body}'
        assert 'Access-Control-Allow-Origin' not in reply.headers, dict(reply.headers)
    assert stage.server.post(request, {'Origin': stage.server.url}).status == 200


async def a_connection_that_is_cut_changes_nothing(stage):
    meta = {**META, 'progressToken': 'p'}
    arguments = {'message': 'stream 40 100', 'idempotency_key': 'cut'}
    call = _request('tools/call', {'name': 'ask_agent', 'arguments': arguments}, meta)
    headers = {**_headers('tools/call', 'ask_agent'), 'Content-Type': 'application/json', 'Accept': 'text/event-stream'}
    connection = http.client.HTTPConnection('127.0.0.1', stage.server.port, timeout=PATIENCE)
    connection.request('POST', '/mcp', json.dumps(call), headers)
    reply = connection.getresponse()
    while not reply.readline().startswith(b'data: '):
        pass
    reply.close()
    connection.close()
    stage.era = 'modern'
    async with stage.client() as client:
        with anyio.fail_after(PATIENCE):
            result = await client.call_tool('ask_agent', {**arguments, 'wait_seconds': 0})
        task = result.structured_content['task']
        assert (await in_state(client, task, 'completed'))['answer'].endswith('chunk 40\n')


async def a_question_names_its_task_so_that_any_server_takes_the_answer(stage):
    """The id of an elicitation holds task and question, so its response needs neither session nor connection."""
    reply = stage.server.post(_initialize('2025-06-18', {'elicitation': {}}))
    session = {'Mcp-Session-Id': reply.headers['Mcp-Session-Id'], 'MCP-Protocol-Version': '2025-06-18'}
    params = {'name': 'ask_asks', 'arguments': {'message': 'clean up'}}
    call = {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': params}
    headers = {**session, 'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream'}
    connection = http.client.HTTPConnection('127.0.0.1', stage.server.port, timeout=PATIENCE)
    connection.request('POST', '/mcp', json.dumps(call), headers)
    reply = connection.getresponse()

    def message():
        while not (line := reply.readline()).startswith(b'data: '):
            assert line, 'the stream ends early'
        return json.loads(line.removeprefix(b'data: '))

    question = message()
    assert question['method'] == 'elicitation/create', question
    choice = question['params']['requestedSchema']['properties']['choice']
    # This version knows no titles but these.
    assert choice['enum'] == ['allow', 'reject'] and choice['enumNames'] == ['Allow', 'Reject'], choice
    assert 'mode' not in question['params'], question
    answer = {'jsonrpc': '2.0', 'id': question['id'], 'result': {'action': 'accept', 'content': {'choice': 'allow'}}}
    assert stage.server.post(answer, session).status == 202
    result = message()
    assert result['id'] == 2 and 'is gone' in result['result']['content'][0]['text'], result
    reply.close()
    connection.close()

"""An ACP agent on stdio: it uses a tool, asks for permission, and answers in Markdown.

    asking_agent.py TEXT_FILE

`TEXT_FILE` holds what it says after a yes, as JSON: {"text": ..., "title": ..., "input": {...}}. It may have the answers to
choose from ("options"), what the tool gives ("result"), and how many tool calls come before the question ("steps"), each a row of the console.
With "gate" it does nothing before there is a file `go` beside TEXT_FILE.
"""

import json
import pathlib
import sys
import time

said = json.loads(pathlib.Path(sys.argv[1]).read_text())


def send(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)


def update(session, **members):
    send(method='session/update', params={'sessionId': session, 'update': members})


def prompt(request):
    session = request['params']['sessionId']
    while said.get('gate') and not (pathlib.Path(sys.argv[1]).parent / 'go').exists():
        time.sleep(0.05)
    for step in range(1, said.get('steps', 0) + 1):
        update(session, sessionUpdate='tool_call', toolCallId=f'step-{step}', title=f'step {step}.', kind='read', status='completed')
    call = {'toolCallId': 'call-1', 'title': said['title'], 'kind': 'execute', 'rawInput': said['input']}
    update(session, sessionUpdate='tool_call', status='pending', **call)
    options = said.get('options') or [
        {'optionId': 'allow', 'name': 'Allow', 'kind': 'allow_once'},
        {'optionId': 'reject', 'name': 'Reject', 'kind': 'reject_once'},
    ]
    send(id=900, method='session/request_permission', params={'sessionId': session, 'toolCall': call, 'options': options})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get('method') == 'session/cancel':
            return {'stopReason': 'cancelled'}
        if answer.get('id') == 900:
            break
    chosen = answer.get('result', {}).get('outcome', {}).get('optionId')
    if chosen == 'allow':
        content = [{'type': 'content', 'content': {'type': 'text', 'text': said.get('result', 'removed')}}]
        update(session, sessionUpdate='tool_call_update', toolCallId='call-1', status='completed', content=content)
        text = said['text']
    else:
        update(session, sessionUpdate='tool_call_update', toolCallId='call-1', status='failed')
        text = 'It was not allowed.'
    update(session, sessionUpdate='agent_message_chunk', content={'type': 'text', 'text': text})
    return {'stopReason': 'end_turn'}


for line in sys.stdin:
    request = json.loads(line)
    match request.get('method'):
        case 'initialize':
            result = {'protocolVersion': 1, 'agentCapabilities': {}, 'authMethods': []}
        case 'session/new':
            result = {'sessionId': 'session-1'}
        case 'session/prompt':
            result = prompt(request)
        case _:
            continue
    send(id=request['id'], result=result)

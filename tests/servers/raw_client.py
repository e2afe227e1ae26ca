"""A small client on top of urllib that speaks the dialect of one server, and gives what it gets as plain values.

It knows only what the probes need. What a server leaves out is None or empty here; nothing is filled in.
"""

import json
import urllib.error
import urllib.request
import uuid

from typing import Any, NamedTuple

# No proxy of the machine stands before the loopback interface.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

CARD_PATHS = {'0.2': '/.well-known/agent.json'}
BINDINGS = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}

METHODS_OF_1_0 = {
    'send': 'SendMessage',
    'stream': 'SendStreamingMessage',
    'get': 'GetTask',
    'cancel': 'CancelTask',
}
METHODS_OF_0_X = {'send': 'message/send', 'stream': 'message/stream', 'get': 'tasks/get', 'cancel': 'tasks/cancel'}
PATHS = {
    'send': ('POST', '/message:send'),
    'stream': ('POST', '/message:stream'),
    'get': ('GET', '/tasks/{id}'),
    'cancel': ('POST', '/tasks/{id}:cancel'),
}
EVENT_KINDS = {'status-update': 'statusUpdate', 'artifact-update': 'artifactUpdate'}
STATES = {'cancelled': 'canceled'}  # HTTP+JSON of 0.3 has two Ls


class Reply(NamedTuple):
    """A task, a message or an event."""

    kind: str  # task, message, statusUpdate or artifactUpdate
    task: str | None
    context: str | None
    state: str | None  # as 0.3 writes it: input-required
    parts: list[tuple[str, Any]]  # of the message, of the status, or of all artifacts; text, bytes, url or data
    append: bool
    last_chunk: bool


class Refusal(Exception):
    """A code of JSON-RPC, or a status of HTTP."""


class RawClient:
    def __init__(self, url, version, binding):
        self.version = version
        self.binding = binding
        with OPENER.open(url + CARD_PATHS.get(version, '/.well-known/agent-card.json')) as response:
            self.url = interface_url(json.load(response), binding)

    def send(self, text, asked=None):
        """Sends and waits; `asked` is the reply that the text answers."""
        with self._call('send', self._message(text, asked)) as response:
            return plain(self._result(json.load(response)))

    def stream(self, text):
        """Sends, and yields each event."""
        with self._call('stream', self._message(text)) as response:
            for data in events(response):
                yield plain(self._result(json.loads(data)))

    def get(self, task):
        return self._task('get', task)

    def cancel(self, task):
        return self._task('cancel', task)

    def _task(self, operation, task):
        with self._call(operation, {'id': task}) as response:
            return plain({'task': self._result(json.load(response))})

    def _message(self, text, asked=None):
        message = {'messageId': str(uuid.uuid4())}
        if self.version == '1.0':
            message.update(role='ROLE_USER', parts=[{'text': text}])
        elif self.binding == 'jsonrpc':
            message.update(kind='message', role='user', parts=[{'kind': 'text', 'text': text}])
        else:
            message.update(role='ROLE_USER', content=[{'text': text}])
        if asked:
            message.update(taskId=asked.task, contextId=asked.context)
        # HTTP+JSON of 0.3 does not wait unless it is told to.
        configuration = {} if self.version == '1.0' else {'configuration': {'blocking': True}}
        return {'message': message, **configuration}

    def _call(self, operation, params):
        headers = {'Content-Type': 'application/json', 'A2A-Version': self.version}
        if self.binding == 'jsonrpc':
            method = (METHODS_OF_1_0 if self.version == '1.0' else METHODS_OF_0_X)[operation]
            body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
            request = urllib.request.Request(self.url, json.dumps(body).encode(), headers, method='POST')
        else:
            verb, path = PATHS[operation]
            prefix = '' if self.version == '1.0' else '/v1'
            url = self.url + prefix + path.format(id=params.pop('id', ''))
            body = json.dumps(params).encode() if verb == 'POST' else None
            request = urllib.request.Request(url, body, headers, method=verb)
        try:
            return OPENER.open(request)
        except urllib.error.HTTPError as error:
            raise Refusal(error.code) from error

    def _result(self, body):
        if self.binding == 'jsonrpc':
            if 'error' in body:
                raise Refusal(body['error']['code'])
            return body['result']
        return body


def interface_url(card, binding):
    """Where the card says that the binding is."""
    interfaces = [(one['protocolBinding'], one['url']) for one in card.get('supportedInterfaces', [])]
    if 'url' in card:
        interfaces.append((card.get('preferredTransport', 'JSONRPC'), card['url']))
    return dict(reversed(interfaces))[BINDINGS[binding]]


def events(response):
    """The data of each event of a stream; it may have several lines."""
    data = []
    for line in response:
        line = line.decode().rstrip('\r\n')
        if line.startswith('data:'):
            data.append(line.removeprefix('data:').removeprefix(' '))
        elif not line and data:
            yield '\n'.join(data)
            data = []


def plain(body):
    """Reads what names its kind, in a member `kind` or as its only member."""
    if 'kind' in body:
        kind = EVENT_KINDS.get(body['kind'], body['kind'])
    else:
        [(kind, body)] = body.items()
    status = body.get('status', {})
    said = body if kind == 'message' else status.get('message', {})
    parts = said.get('parts', said.get('content', []))
    artifacts = body.get('artifacts', [body['artifact']] if 'artifact' in body else [])
    if artifacts:
        parts = [part for artifact in artifacts for part in artifact['parts']]
    return Reply(
        kind,
        body.get('id', body.get('taskId')),
        body.get('contextId'),
        plain_state(status['state']) if status else None,
        [plain_part(part) for part in parts],
        body.get('append', False),
        body.get('lastChunk', False),
    )


def plain_state(state):
    state = state.removeprefix('TASK_STATE_').replace('_', '-').lower()
    return STATES.get(state, state)


def plain_part(part):
    if 'text' in part:
        return 'text', part['text']
    if 'data' in part:
        # HTTP+JSON of 0.3 has an object around it.
        data = part['data']
        return 'data', data['data'] if set(data) == {'data'} else data
    file = part.get('file', part)
    for kind, names in {'bytes': ('raw', 'bytes', 'fileWithBytes'), 'url': ('url', 'uri', 'fileWithUri')}.items():
        for name in names:
            if name in file:
                return kind, file[name]
    raise ValueError(f'no part that is known: {part}')

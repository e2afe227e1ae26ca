"""A small client on top of urllib that speaks one dialect, and gives what it gets as plain values.

It knows only what the cases need. What a server leaves out is None or empty here; nothing is filled in.
"""

import json
import urllib.error
import urllib.request
import uuid

from typing import Any, NamedTuple

# No proxy of the machine stands before the loopback interface.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

CARD_PATHS = {'0.2': '/.well-known/agent.json', '0.1': '/.well-known/agent.json'}
BINDINGS = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}

METHODS_OF_1_0 = {
    'send': 'SendMessage',
    'stream': 'SendStreamingMessage',
    'get': 'GetTask',
    'cancel': 'CancelTask',
    'subscribe': 'SubscribeToTask',
    'list': 'ListTasks',
}
METHODS_OF_0_X = {
    'send': 'message/send',
    'stream': 'message/stream',
    'get': 'tasks/get',
    'cancel': 'tasks/cancel',
    'subscribe': 'tasks/resubscribe',
}
METHODS = {
    '1.0': METHODS_OF_1_0,
    '0.3': METHODS_OF_0_X,
    '0.2': METHODS_OF_0_X,
    '0.1': {**METHODS_OF_0_X, 'send': 'tasks/send', 'stream': 'tasks/sendSubscribe'},
}
PATHS = {
    'send': ('POST', '/message:send'),
    'stream': ('POST', '/message:stream'),
    'get': ('GET', '/tasks/{id}'),
    'cancel': ('POST', '/tasks/{id}:cancel'),
    'subscribe': ('POST', '/tasks/{id}:subscribe'),
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


class Frame(NamedTuple):
    """An event of a stream as it came."""

    number: str | None  # which `Last-Event-ID` names
    data: str


class Refusal(Exception):
    """A code of JSON-RPC, or a status of HTTP."""


class RawClient:
    def __init__(self, url, version, binding):
        self.version = version
        self.binding = binding
        path = CARD_PATHS.get(version, '/.well-known/agent-card.json')
        request = urllib.request.Request(url + path, headers={'A2A-Version': version})
        with OPENER.open(request) as response:
            self.card = json.load(response)
        self.url = interface_url(self.card, binding)

    def send(self, text, asked=None, context=None, files=()):
        """Sends and waits; `asked` is the reply that the text answers, `files` are more parts."""
        with self._call('send', self._message(text, asked, context, files)) as response:
            result = self._result(json.load(response))
            return plain({'task': result} if self.version == '0.1' else result)

    def stream(self, text):
        """Sends, and yields each event."""
        for frame in self.frames(text):
            yield self.read(frame)

    def frames(self, text):
        """Sends, and yields each event as it comes."""
        with self._call('stream', self._message(text)) as response:
            yield from frames(response)

    def subscribe(self, task, after):
        """The events of a task after this number, as they come."""
        with self._call('subscribe', {'id': task}, {'Last-Event-ID': after}) as response:
            yield from frames(response)

    def read(self, frame):
        event = self._result(json.loads(frame.data))
        if self.version == '0.1':
            event = {'artifactUpdate' if 'artifact' in event else 'statusUpdate': event}
        return plain(event)

    def get(self, task):
        return self._task('get', task)

    def cancel(self, task):
        return self._task('cancel', task)

    def list(self, state):
        """The tasks in this state; in JSON-RPC of 1.0 only."""
        with self._call('list', {'status': state}) as response:
            return [plain({'task': task}) for task in self._result(json.load(response))['tasks']]

    def _task(self, operation, task):
        with self._call(operation, {'id': task}) as response:
            return plain({'task': self._result(json.load(response))})

    def _message(self, text, asked=None, context=None, files=()):
        parts = [self._part(kind, value) for kind, value in [('text', text), *files]]
        context = asked.context if asked else context
        if self.version == '0.1':
            place = {'id': asked.task if asked else str(uuid.uuid4()), **({'sessionId': context} if context else {})}
            return {**place, 'message': {'role': 'user', 'parts': parts}}
        message = {'messageId': str(uuid.uuid4())}
        if self.version == '1.0':
            message.update(role='ROLE_USER', parts=parts)
        elif self.binding == 'jsonrpc':
            message.update(kind='message', role='user', parts=parts)
        else:
            message.update(role='ROLE_USER', content=parts)
        if asked:
            message.update(taskId=asked.task)
        if context:
            message.update(contextId=context)
        # HTTP+JSON of 0.3 does not wait unless it is told to.
        configuration = {} if self.version == '1.0' else {'configuration': {'blocking': True}}
        return {'message': message, **configuration}

    def _part(self, kind, value):
        if self.version == '1.0':
            return {{'bytes': 'raw'}.get(kind, kind): value}
        if self.binding == 'http_json':
            name, value = {'bytes': ('file', {'fileWithBytes': value}), 'data': ('data', {'data': value})}.get(
                kind, (kind, value)
            )
            return {name: value}
        tag = 'type' if self.version == '0.1' else 'kind'
        if kind == 'bytes':
            return {tag: 'file', 'file': {'bytes': value}}
        return {tag: kind, kind: value}

    def _call(self, operation, params, headers={}):
        headers = {'Content-Type': 'application/json', 'A2A-Version': self.version, **headers}
        if self.binding == 'jsonrpc':
            body = {'jsonrpc': '2.0', 'id': 1, 'method': METHODS[self.version][operation], 'params': params}
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
    interfaces += [(one['transport'], one['url']) for one in card.get('additionalInterfaces', [])]
    return dict(reversed(interfaces))[BINDINGS[binding]]


def frames(response):
    """Each event of a stream; its data may have several lines."""
    number, data = None, []
    for line in response:
        line = line.decode().rstrip('\r\n')
        if line.startswith('data:'):
            data.append(line.removeprefix('data:').removeprefix(' '))
        elif line.startswith('id:'):
            number = line.removeprefix('id:').strip()
        elif not line and data:
            yield Frame(number, '\n'.join(data))
            number, data = None, []


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
    # In 0.1 Sabir's last status repeats the artifacts.
    if artifacts and kind != 'statusUpdate':
        parts = [part for artifact in artifacts for part in artifact['parts']]
    chunk = {**body.get('artifact', {}), **body}  # 0.1 says inside the artifact how it continues
    return Reply(
        kind,
        body.get('id', body.get('taskId')),
        body.get('contextId', body.get('sessionId')),
        plain_state(status['state']) if status else None,
        [plain_part(part) for part in parts],
        chunk.get('append', False),
        chunk.get('lastChunk', False),
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

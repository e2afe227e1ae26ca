"""A plain A2A 1.0 client over JSON-RPC, as small as a client can be."""

import json
import time
import urllib.request
import uuid

# For one answer and for the next frame of a stream; the limit of the case is the shorter one.
SECONDS = 120
PAUSE = 0.05

# Whatever proxy the machine has, the loopback interface is not behind it.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Client:
    def __init__(self, url):
        self.url = url.rstrip('/')

    def send(self, agent, text, **place):
        """Sends a message and waits until its task rests; `place` is a taskId or a contextId."""
        result = self._call(f'/agents/{agent}/a2a/jsonrpc', 'SendMessage', {'message': _message(text, place)})
        return Task(result['task'])

    def stream(self, agent, text, **place):
        """Sends a message and gives what comes of it, frame by frame."""
        params = {'message': _message(text, place)}
        response = self._open(f'/agents/{agent}/a2a/jsonrpc', 'SendStreamingMessage', params)
        with response:
            for line in response:
                if line.startswith(b'data:'):
                    yield Frame(_result(line[len(b'data:') :]))

    def get(self, task):
        return Task(self._call('/a2a/jsonrpc', 'GetTask', {'id': task}))

    def list(self):
        """All tasks, without their history."""
        return [Task(task) for task in self._call('/a2a/jsonrpc', 'ListTasks', {'pageSize': 100})['tasks']]

    def tasks(self, agent):
        """The tasks of an agent."""
        return [Task(value) for value in self._call(f'/agents/{agent}/a2a/jsonrpc', 'ListTasks', {})['tasks']]

    def until(self, task, state, seconds=10):
        """The task in this state, or as it is after so many seconds."""
        deadline = time.monotonic() + seconds
        while (known := self.get(task)).state != state and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return known

    def cancel(self, task):
        return Task(self._call('/a2a/jsonrpc', 'CancelTask', {'id': task}))

    def _call(self, path, method, params):
        with self._open(path, method, params) as response:
            return _result(response.read())

    def _open(self, path, method, params):
        body = {'jsonrpc': '2.0', 'id': str(uuid.uuid4()), 'method': method, 'params': params}
        headers = {'Content-Type': 'application/json', 'A2A-Version': '1.0'}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        return DIRECT.open(request, timeout=SECONDS)


class Task:
    def __init__(self, value):
        self.value = value
        self.id = value['id']
        self.context = value['contextId']
        self.state = _state(value['status'])
        self.says = _text(value['status'].get('message', {}).get('parts', []))
        self.artifacts = value.get('artifacts', [])

    @property
    def answer(self):
        """All that the program answered."""
        named = [artifact for artifact in self.artifacts if artifact.get('name') == 'assistant-response']
        assert len(named) == 1, f'one artifact `assistant-response`: got {self.value!r}'
        return _text(named[0]['parts'])


class Frame:
    """One event of a stream; what it does not tell of is empty."""

    def __init__(self, value):
        self.value = value
        (kind, body), *_ = value.items()
        self.task = body['id'] if kind == 'task' else body['taskId']
        status = body.get('status', {})
        self.state = _state(status) if status else None
        self.parts = status.get('message', {}).get('parts', [])
        self.says = _text(self.parts)
        self.data = [part['data'] for part in self.parts if 'data' in part]
        self.wrote = _text(body['artifact'].get('parts', [])) if kind == 'artifactUpdate' else ''


def _message(text, place):
    return {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': [{'text': text}], **place}


def _result(body):
    answer = json.loads(body)
    assert 'error' not in answer, f'refused: {answer["error"]!r}'
    return answer['result']


def _state(status):
    """`TASK_STATE_INPUT_REQUIRED` as `input-required`."""
    return status['state'].removeprefix('TASK_STATE_').lower().replace('_', '-')


def _text(parts):
    return ''.join(part.get('text', '') for part in parts)

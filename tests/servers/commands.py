"""The rows about Sabir's client commands: what is run, what its output must hold, and with which code it must end."""

import base64

from command_runner import Row, Step

STATE = 'task.status.state'
WORDS = 'task.status.message.parts.0.text'
TEXT = 'task.artifacts.0.parts.0.text'

COMPLETED = 'TASK_STATE_COMPLETED'
CANCELED = 'TASK_STATE_CANCELED'
INPUT_REQUIRED = 'TASK_STATE_INPUT_REQUIRED'

# Exit codes.
FAILED, UNREACHABLE, TIMEOUT, INPUT_NEEDED, REFUSED, WAS_CANCELED = 1, 3, 5, 6, 7, 8

# The SDK of 0.2 answers a send when the task is over, also where it is asked not to wait, and cancels what is over.
SINCE_0_3 = ('1.0', '0.3')

CARD = ['card', '{url}', '--json']

# The Python SDK of 0.3 wraps base64 in base64, in HTTP+JSON only; nothing on the wire tells that from a file of base64.
FILE = (b'Hello file', base64.b64encode(b'Hello file'))


def send(*words):
    return ['send', '{url}', *words]


def ended(text, exit_code, state, words):
    """A row about a task that the agent ends at once, with words."""
    name = f'a task that is {state} exits with {exit_code}'
    holds = {STATE: f'TASK_STATE_{state.upper().replace("-", "_")}', WORDS: words}
    return Row(name, [Step(send(text), holds, exit_code=exit_code)])


def unknown_task(command, *words):
    arguments = [command, '{url}', 'no-such-task', *words]
    row_name = f'{command} of a task that does not exist is refused'
    return Row(row_name, [Step(arguments, {'error.code': 'TaskNotFoundError'}, exit_code=REFUSED)])


def no_server(command, *words):
    arguments = [command, '{nobody}', *words]
    row_name = f'{command} says that there is no server'
    return Row(row_name, [Step(arguments, {'error.code': 'A2ACLI_ERR_UNREACHABLE'}, exit_code=UNREACHABLE)])


CARDS = [
    Row('the card is found', [Step(CARD, {'card.name': 'Words', 'card.skills.0.id': 'words'})]),
    Row(
        'the card names its interface',
        [Step(CARD, {'card.supportedInterfaces.0.protocolBinding': '{binding}'})],
        versions=('1.0',),
    ),
    Row('the card names its transport', [Step(CARD, {'card.preferredTransport': '{binding}'})], versions=('0.3',)),
    Row('the card of 0.2 has an older path', [Step(CARD, {'card.protocolVersion': '0.2.6'})], versions=('0.2',)),
]

SENDS = [
    Row(
        'a text is echoed',
        [Step(send('hello', 'world'), {STATE: COMPLETED, TEXT: 'echo: hello world'}, artifact='echo: hello world')],
    ),
    Row(
        'a stream is shown piece by piece',
        [Step(send('stream 5 20'), {STATE: COMPLETED}, artifact='chunk 1\nchunk 2\nchunk 3\nchunk 4\nchunk 5\n')],
    ),
    ended('fail too hard', FAILED, 'failed', 'too hard'),
    ended('reject not mine', REFUSED, 'rejected', 'not mine'),
    ended('ask which color', INPUT_NEEDED, 'input-required', 'which color'),
    ended('auth who are you', INPUT_NEEDED, 'auth-required', 'who are you'),
    Row('a message comes without a task', [Step(send('message good day'), {'message.parts.0.text': 'good day'})]),
    Row('a file is saved', [Step(send('file', '--output', '{folder}'), {STATE: COMPLETED}, saves=FILE)]),
    Row(
        'a file elsewhere is named',
        [Step(send('url'), {'task.artifacts.0.parts.0.url': 'https://example.com/output.txt'})],
    ),
    Row('data come', [Step(send('data'), {'task.artifacts.0.parts.0.data': {'key': 'value', 'count': 42}})]),
    Row(
        'files and data are sent',
        [
            Step(
                send('look', '--file', '{note}', '--data', '{order}'),
                {
                    TEXT: 'echo: look',
                    'task.artifacts.0.parts.1.raw': base64.b64encode(b'a note').decode(),
                    'task.artifacts.0.parts.2.data': {'pizza': [1, 2.5, None]},
                },
            )
        ],
    ),
    Row(
        'a task can be in the context of another',
        [
            Step(send('one'), keep={'task': 'task.id', 'context': 'task.contextId'}),
            Step(send('two', '--context-id', '{context}'), {'task.contextId': '{context}', TEXT: 'echo: two'}),
        ],
    ),
    Row(
        'a send that may not take long exits with 5',
        [Step(send('slow 2', '--timeout', '300ms'), {'error.code': 'A2ACLI_ERR_TIMEOUT'}, exit_code=TIMEOUT)],
    ),
    Row(
        # The JavaScript SDK of 0.3 fails in its own code here, in HTTP+JSON only.
        'a task that does not exist is not continued',
        [Step(send('hello', '--task-id', 'no-such-task'), exit_code=REFUSED)],
    ),
]

ASKED = Step(send('ask which color'), {STATE: INPUT_REQUIRED}, {'task': 'task.id'}, exit_code=INPUT_NEEDED)
DONE = Step(send('hello'), {STATE: COMPLETED}, {'task': 'task.id'})

ANSWERS = [
    Row(
        'an answer completes the same task',
        [
            ASKED,
            Step(
                ['answer', '{url}', '{task}', 'light', 'blue'],
                {'task.id': '{task}', STATE: COMPLETED, TEXT: 'echo: light blue'},
                artifact='echo: light blue',
            ),
        ],
    ),
    Row(
        'an answer may lead to another question',
        [
            ASKED,
            Step(
                ['answer', '{url}', '{task}', 'ask which shade'],
                {'task.id': '{task}', STATE: INPUT_REQUIRED, WORDS: 'which shade'},
                exit_code=INPUT_NEEDED,
            ),
            Step(['answer', '{url}', '{task}', 'dark'], {'task.id': '{task}', STATE: COMPLETED, TEXT: 'echo: dark'}),
        ],
    ),
    Row(
        'a task that does not wait is not answered',
        [DONE, Step(['answer', '{url}', '{task}', 'blue'], {'error.code': 'SABIR_ERR_NOT_WAITING'}, exit_code=REFUSED)],
    ),
]

LOOKS = [
    Row(
        'get shows a task that is over',
        [
            DONE,
            Step(
                ['get', '{url}', '{task}'],
                {'id': '{task}', 'status.state': COMPLETED, 'artifacts.0.parts.0.text': 'echo: hello'},
            ),
        ],
    ),
    Row(
        'get shows a task that waits',
        [
            ASKED,
            Step(
                ['get', '{url}', '{task}'],
                {'status.state': INPUT_REQUIRED, 'status.message.parts.0.text': 'which color'},
            ),
        ],
    ),
    Row(
        'get saves the files',
        [
            Step(send('file'), keep={'task': 'task.id'}),
            Step(['get', '{url}', '{task}', '--output', '{folder}'], saves=FILE),
        ],
    ),
    Row(
        'watch follows a task that runs',
        [
            Step(send('stream 5 150', '--async'), keep={'task': 'task.id'}),
            Step(
                ['watch', '{url}', '{task}'],
                {'task.id': '{task}', STATE: COMPLETED},
                artifact='chunk 1\nchunk 2\nchunk 3\nchunk 4\nchunk 5\n',
            ),
            # The task of the server is as it would be without those who watched it.
            Step(
                ['get', '{url}', '{task}'],
                {'artifacts.0.parts.4.text': 'chunk 5\n', 'artifacts.0.parts.5': None},
            ),
        ],
    ),
    Row(
        'watch shows a task that is over',
        [
            DONE,
            Step(['watch', '{url}', '{task}'], {'task.id': '{task}', STATE: COMPLETED}, artifact='echo: hello'),
        ],
    ),
    Row(
        'watch exits as the task ended',
        [
            Step(send('fail too hard'), keep={'task': 'task.id'}, exit_code=FAILED),
            Step(['watch', '{url}', '{task}'], {WORDS: 'too hard'}, exit_code=FAILED),
        ],
    ),
    Row(
        'watch tells that a task waits',
        [ASKED, Step(['watch', '{url}', '{task}'], {WORDS: 'which color'}, exit_code=INPUT_NEEDED)],
    ),
    Row(
        'tasks are listed',
        [
            Step(send('hello'), keep={'task': 'task.id', 'context': 'task.contextId'}),
            Step(
                ['list', '{url}', '--context-id', '{context}'],
                {'id': '{task}', 'contextId': '{context}', 'status.state': COMPLETED},
            ),
        ],
        versions=('1.0',),
    ),
    Row(
        'versions before 1.0 have no list',
        [
            Step(
                ['list', '{url}'],
                {'error.code': 'UnsupportedOperationError', 'error.hint': 'only A2A 1.0 can list tasks'},
                exit_code=REFUSED,
            )
        ],
        versions=('0.3', '0.2'),
    ),
]

CANCELS = [
    Row(
        'a task that runs is watched for a while, and canceled',
        [
            Step(send('slow 600', '--async'), keep={'task': 'task.id'}),
            Step(
                ['watch', '{url}', '{task}', '--timeout', '300ms'],
                {'error.code': 'A2ACLI_ERR_TIMEOUT'},
                exit_code=TIMEOUT,
            ),
            Step(['cancel', '{url}', '{task}'], {'id': '{task}', 'status.state': CANCELED}),
            Step(['get', '{url}', '{task}'], {'status.state': CANCELED}),
            Step(['watch', '{url}', '{task}'], {STATE: CANCELED}, exit_code=WAS_CANCELED),
        ],
        versions=SINCE_0_3,
    ),
    Row('a task that waits is canceled', [ASKED, Step(['cancel', '{url}', '{task}'], {'status.state': CANCELED})]),
    Row(
        'a task that is over is not canceled',
        [
            DONE,
            Step(['cancel', '{url}', '{task}'], {'error.code': 'TaskNotCancelableError'}, exit_code=REFUSED),
            Step(['get', '{url}', '{task}'], {'status.state': COMPLETED}),
        ],
        versions=SINCE_0_3,
    ),
]

REFUSALS = [
    unknown_task('get'),
    unknown_task('watch'),
    unknown_task('cancel'),
    unknown_task('answer', 'blue'),
    no_server('card'),
    no_server('send', 'hello'),
    no_server('get', 'no-such-task'),
    no_server('watch', 'no-such-task'),
    no_server('list'),
    no_server('cancel', 'no-such-task'),
    no_server('answer', 'no-such-task', 'blue'),
]

ROWS = [*CARDS, *SENDS, *ANSWERS, *LOOKS, *CANCELS, *REFUSALS]

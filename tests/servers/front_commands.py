"""The rows about Sabir's client commands, against a front: it answers as the server behind it, but for the rows here.

The commands speak another dialect to the front than the front speaks to the server.
"""

from command_runner import Row, Sabir, Step
from commands import ANSWERS, CANCELS, COMPLETED, LOOKS, SENDS, SINCE_0_3, STATE, TEXT, send, unknown_task

# By version and binding of the server behind the front. 0.1 has no words for some rows; `front_cases` speak it.
SPOKEN = {
    ('1.0', 'jsonrpc'): ('0.3', 'http_json'),
    ('1.0', 'http_json'): ('0.2', 'jsonrpc'),
    ('0.3', 'jsonrpc'): ('1.0', 'http_json'),
    ('0.3', 'http_json'): ('1.0', 'jsonrpc'),
    ('0.2', 'jsonrpc'): ('0.3', 'jsonrpc'),
}
TRANSPORTS = {'jsonrpc': 'jsonrpc', 'http_json': 'http+json'}

# Rows that a front answers in another way, with those below instead: it has no answer without a task, and it stores the
# pieces of a text as one part.
DIFFERENT = {'a message comes without a task', 'watch follows a task that runs'}

SHARED = [row for row in [*SENDS, *ANSWERS, *LOOKS, *CANCELS] if row.name not in DIFFERENT]

FIVE_CHUNKS = ''.join(f'chunk {i}\n' for i in range(1, 6))

OWN = [
    Row('a message becomes a task', [Step(send('message good day'), {STATE: COMPLETED, TEXT: 'good day'})]),
    Row(
        'watch follows a task that runs',
        [
            Step(send('stream 5 20', '--async'), keep={'task': 'task.id'}),
            Step(['watch', '{url}', '{task}'], {'task.id': '{task}', STATE: COMPLETED}, artifact=FIVE_CHUNKS),
            Step(['get', '{url}', '{task}'], {'artifacts.0.parts.0.text': FIVE_CHUNKS, 'artifacts.0.parts.1': None}),
        ],
    ),
    unknown_task('get'),
    unknown_task('watch'),
    unknown_task('cancel'),
    unknown_task('answer', 'blue'),
]


def rows(version):
    """Those for commands that speak this version."""
    # The limits of the SDK of 0.2 are not those of a front.
    return [row for row in [*SHARED, *OWN] if version in row.versions or row.versions == SINCE_0_3]


def speaking(binary, front, remote):
    """The commands against the front, in another dialect than the server behind it has."""
    version, binding = SPOKEN[remote]
    flags = ['--a2a-version', version, '--transport', TRANSPORTS[binding]]
    return Sabir(binary, front.url, version, binding, flags)

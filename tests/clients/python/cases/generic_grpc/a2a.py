"""Both versions of A2A as a generic client sees them: the same nouns, spelled in each."""

import asyncio
import uuid

from dataclasses import dataclass

from reflection_peer import V0_3, V1

ENDS = {'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_CANCELLED'}


@dataclass
class Version:
    service: str
    subscribe: str  # the name of the method
    message: str  # where the message of a request is
    parts: str  # where the parts of a message are

    def send(self, text, **fields):
        """A request to send; `fields` are those of the message."""
        parts = [{'text': text}]
        message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', self.parts: parts, **fields}
        return {self.message: message}

    def start(self, text, **fields):
        """A request that does not wait for the task."""
        configuration = {'returnImmediately': True} if self.service == V1 else {'blocking': False}
        return self.send(text, **fields) | {'configuration': configuration}

    def task(self, id):
        """A request about the task."""
        return {'id': id} if self.service == V1 else {'name': f'tasks/{id}'}


VERSIONS = (
    Version(V1, 'SubscribeToTask', 'message', 'parts'),
    Version(V0_3, 'TaskSubscription', 'request', 'content'),
)
ONE, THREE = VERSIONS


async def settled(peer, version, id):
    """Asks until the task has ended."""
    while (task := await peer.unary(version.service, 'GetTask', version.task(id)))['status']['state'] not in ENDS:
        await asyncio.sleep(0.05)
    return task


def text_of(artifact):
    return ''.join(part['text'] for part in artifact['parts'])


def streamed_text(frames):
    """The text of the artifact that the frames bring."""
    return ''.join(text_of(frame['artifactUpdate']['artifact']) for frame in frames if 'artifactUpdate' in frame)

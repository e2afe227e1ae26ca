"""What a client sees, in plain values that no SDK owns.

The SDKs spell the same answers as protobuf messages and as pydantic models. Each peer reads its own into these,
so that one set of cases holds for both. A value that one version cannot say is None.
"""

import asyncio

from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass
class Part:
    kind: str  # text, raw, url or data
    value: Any
    name: str | None = None
    media: str | None = None
    metadata: dict = field(default_factory=dict)


@dataclass
class Message:
    id: str
    role: str
    parts: list[Part]
    task: str | None
    context: str | None

    @property
    def text(self):
        return joined(self.parts)


@dataclass
class Artifact:
    id: str
    name: str | None
    parts: list[Part]

    @property
    def text(self):
        return joined(self.parts)


@dataclass
class Task:
    id: str
    context: str
    state: str  # as 0.3 writes it: input-required
    says: str | None  # the text of the status message
    artifacts: list[Artifact]
    history: list[Message]


@dataclass
class Status:
    task: str
    context: str
    state: str
    says: str | None
    final: bool | None  # 1.0 has none


@dataclass
class Chunk:
    task: str
    context: str
    artifact: Artifact
    append: bool
    last: bool


@dataclass
class Webhook:
    task: str | None  # None before there is one
    id: str
    url: str
    token: str | None


@dataclass
class Card:
    name: str
    version: str
    streaming: bool
    push: bool
    skills: list[str]
    interfaces: list[tuple[str, str]] | None  # binding and version, in the card's order; 0.2 knows one address


class Refusal(NamedTuple):
    """One error, in the four ways the SDKs show it."""

    error: str  # the class that 1.3.0 raises
    code: int  # what the SDKs of 0.x hand over from JSON-RPC
    http: int  # all that 0.3.26 tells of an HTTP+JSON error
    grpc: str  # the code of gRPC


TASK_NOT_FOUND = Refusal('TaskNotFoundError', -32001, 404, 'NOT_FOUND')
TASK_NOT_CANCELABLE = Refusal('TaskNotCancelableError', -32002, 409, 'FAILED_PRECONDITION')
UNSUPPORTED_OPERATION = Refusal('UnsupportedOperationError', -32004, 400, 'FAILED_PRECONDITION')
FORBIDDEN = Refusal('A2AClientError', -32009, 403, 'PERMISSION_DENIED')  # 1.0 has no error for it
NO_EXTENDED_CARD = Refusal('ExtendedAgentCardNotConfiguredError', -32007, 400, 'FAILED_PRECONDITION')
INVALID_PARAMS = Refusal('InvalidParamsError', -32602, 400, 'INVALID_ARGUMENT')

# What stands for an HTTP status over gRPC.
GRPC_STATUS = {401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 503: 'UNAVAILABLE'}


def of_subscription(peer, refusal):
    """How the SDK tells of a refusal where it wanted to watch a task."""
    if (peer.version, peer.binding) == ('0.3', 'http_json'):
        # This transport looks at the content type before the status and calls any answer but a stream a 400.
        return refusal._replace(http=400)
    return refusal


def text(value):
    return Part('text', value)


def joined(parts):
    return ''.join(part.value for part in parts if part.kind == 'text')


def artifact_texts(frames):
    """What a client holds after folding the frames: a task replaces everything, a chunk replaces or extends."""
    texts = {}
    for frame in frames:
        if isinstance(frame, Task):
            texts = {artifact.id: artifact.text for artifact in frame.artifacts}
        elif isinstance(frame, Chunk):
            before = texts.get(frame.artifact.id, '') if frame.append else ''
            texts[frame.artifact.id] = before + frame.artifact.text
    return list(texts.values())


def chunks(count):
    """The whole text of the demo agent's `stream N`."""
    return ''.join(f'chunk {i}\n' for i in range(1, count + 1))


async def settled(peer, task):
    """Asks until the task is neither new nor at work."""
    while (seen := await peer.get(task)).state in ('submitted', 'working'):
        await asyncio.sleep(0.05)
    return seen


def equal(what, got, wanted):
    assert got == wanted, f'{what}: wanted {wanted!r}, got {got!r}'


def holds(what, condition, seen):
    assert condition, f'{what}: got {seen!r}'

"""The pydantic models of A2A 0.x, read into plain values and written from them.

The SDKs 0.2.16 and 0.3.26 name these types alike, and what they hold is the same JSON with a `kind`.
"""

import base64
import binascii
import uuid

from a2a import types

import plain


def read(event, binding):
    if isinstance(event, types.Task):
        return plain.Task(
            event.id,
            event.context_id,
            event.status.state.value,
            read_says(event.status),
            [read_artifact(artifact, binding) for artifact in event.artifacts or []],
            [read(message, binding) for message in event.history or []],
        )
    if isinstance(event, types.Message):
        return plain.Message(
            event.message_id,
            event.role.value,
            [read_part(part, binding) for part in event.parts],
            event.task_id,
            event.context_id,
        )
    if isinstance(event, types.TaskStatusUpdateEvent):
        return plain.Status(
            event.task_id, event.context_id, event.status.state.value, read_says(event.status), event.final
        )
    return plain.Chunk(
        event.task_id,
        event.context_id,
        read_artifact(event.artifact, binding),
        bool(event.append),
        bool(event.last_chunk),
    )


def read_delivery(body):
    """A delivery is JSON as JSON-RPC has it, whichever binding the webhook was set with."""
    return read(types.Task.model_validate_json(body), 'jsonrpc')


def read_webhook(answer):
    config = answer.push_notification_config
    # Over HTTP+JSON and gRPC SDK 0.3.26 makes an empty token where there is none.
    return plain.Webhook(answer.task_id, config.id, config.url, config.token or None)


def write_webhook(webhook):
    return types.PushNotificationConfig(id=webhook.id, url=webhook.url, token=webhook.token)


def read_says(status):
    # Over HTTP+JSON and gRPC SDK 0.3.26 makes an empty message where there is none.
    if status.message is None or not status.message.parts:
        return None
    return ''.join(part.root.text for part in status.message.parts)


def read_artifact(artifact, binding):
    return plain.Artifact(
        artifact.artifact_id, artifact.name or None, [read_part(part, binding) for part in artifact.parts]
    )


def read_part(part, binding):
    part = part.root
    metadata = part.metadata or {}
    if isinstance(part, types.TextPart):
        return plain.Part('text', part.text, metadata=metadata)
    if isinstance(part, types.DataPart):
        return plain.Part('data', part.data, metadata=metadata)
    file = part.file
    if isinstance(file, types.FileWithUri):
        return plain.Part('url', file.uri, file.name, file.mime_type, metadata)
    return plain.Part('raw', read_bytes(file.bytes, binding), file.name, file.mime_type, metadata)


def read_bytes(text, binding):
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        # The other transports of 0.3.26 wrap base64 in base64 on its way out and take off one layer on its way
        # in: what this client sent comes back as base64, what anybody else made comes as the bytes themselves.
        if binding != 'jsonrpc':
            return text.encode()
        raise


def write_message(content, task, context):
    parts = [plain.text(content)] if isinstance(content, str) else content
    return types.Message(
        message_id=str(uuid.uuid4()),
        role=types.Role.user,
        parts=[write_part(part) for part in parts],
        task_id=task,
        context_id=context,
    )


def write_part(part):
    if part.kind == 'text':
        return types.Part(root=types.TextPart(text=part.value, metadata=part.metadata or None))
    if part.kind == 'data':
        return types.Part(root=types.DataPart(data=part.value, metadata=part.metadata or None))
    if part.kind == 'url':
        file = types.FileWithUri(uri=part.value, name=part.name, mime_type=part.media)
    else:
        file = types.FileWithBytes(bytes=base64.b64encode(part.value).decode(), name=part.name, mime_type=part.media)
    return types.Part(root=types.FilePart(file=file, metadata=part.metadata or None))

"""What the SDKs of A2A 0.2 and 0.3 make of parts, tasks and messages: pydantic models with a `kind`."""

import base64

from a2a.types import DataPart, FilePart, FileWithBytes, FileWithUri, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


def text(text):
    return Part(root=TextPart(text=text))


def file(content, name, media_type):
    encoded = base64.b64encode(content).decode()
    return Part(root=FilePart(file=FileWithBytes(bytes=encoded, name=name, mime_type=media_type)))


def url(url, name, media_type):
    return Part(root=FilePart(file=FileWithUri(uri=url, name=name, mime_type=media_type)))


def data(value):
    return Part(root=DataPart(data=value))


def is_text(part):
    return isinstance(part.root, TextPart)


def task(message):
    return new_task(message)


def message(text, context_id):
    return new_agent_text_message(text, context_id)

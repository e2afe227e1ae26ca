"""What the SDK of A2A 1.0 makes of parts, tasks and messages: protobuf."""

from a2a.helpers import new_data_part, new_raw_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.helpers import new_url_part


def text(text):
    return new_text_part(text)


def file(content, name, media_type):
    return new_raw_part(content, media_type, name)


def url(url, name, media_type):
    return new_url_part(url, media_type, name)


def data(value):
    return new_data_part(value)


def is_text(part):
    return part.HasField('text')


def task(message):
    return new_task_from_user_message(message)


def message(text, context_id):
    return new_text_message(text, context_id=context_id)

"""A2A 1.0 through the official SDK 1.3.0, read into plain values."""

import contextlib
import ssl
import uuid

import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.client.transports.grpc import GrpcTransport
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.helpers import new_data_part, new_raw_part, new_text_part, new_url_part
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors
from a2a.utils.grpc_status import status_from_call
from google.protobuf.json_format import MessageToDict, Parse
from google.rpc.error_details_pb2 import ErrorInfo

import plain

from channels import Channels

BINDINGS = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON', 'grpc': 'GRPC'}
TRANSPORTS = {'jsonrpc': JsonRpcTransport, 'http_json': RestTransport, 'grpc': GrpcTransport}


class Peer:
    sdk = 'python 1.3.0'
    version = '1.0'
    hides_status_of = ()

    def __init__(self, http, channels, card, binding, caller=None):
        self.http = http
        self.channels = channels
        self.caller = caller
        self.sdk_card = card
        self.binding = binding
        self.wire_binding = BINDINGS[binding]
        self.client = self._client(card, streaming=False)
        self.streaming_client = self._client(card, streaming=True)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, url, binding, caller=None, authority=None):
        # The SDK's own time limit of 5 s is for the whole wait of a blocking send; the runner's limit is enough.
        async with (
            httpx.AsyncClient(timeout=None, verify=ssl.create_default_context(cafile=authority)) as http,
            Channels(url, authority) as channels,
        ):
            yield cls(http, channels, await A2ACardResolver(http, url).get_agent_card(), binding, caller)

    def card(self):
        card = self.sdk_card
        return plain.Card(
            name=card.name,
            version=card.version,
            streaming=card.capabilities.streaming,
            push=card.capabilities.push_notifications,
            skills=[skill.id for skill in card.skills],
            interfaces=[(each.protocol_binding, each.protocol_version) for each in card.supported_interfaces],
        )

    def security(self):
        """The schemes of the card by name, each as kind and detail, and which of them are enough."""
        schemes = {}
        for name, scheme in self.sdk_card.security_schemes.items():
            kind = scheme.WhichOneof('scheme')
            details = getattr(scheme, kind)
            schemes[name] = {
                'api_key_security_scheme': lambda: ('apiKey', details.name),
                'http_auth_security_scheme': lambda: ('http', details.scheme),
                'oauth2_security_scheme': lambda: ('oauth2', read_token_url(details.flows)),
            }[kind]()
        return schemes, [list(requirement.schemes) for requirement in self.sdk_card.security_requirements]

    def uses_its_own_version(self):
        """Whether the factory chose the 1.0 transport; it has others for older servers."""
        return type(self.client._transport) is TRANSPORTS[self.binding]

    async def send(self, content, **options):
        """A blocking send; options are those of `request`."""
        return await self._send_once(self.request(content, **options))

    async def start(self, content, **options):
        """A send that does not wait for the task."""
        return await self._send_once(self.request(content, immediately=True, **options))

    async def stream(self, content, **options):
        request = self.request(content, **options)
        async for frame in _reading(self.streaming_client.send_message(request, context=self._context())):
            yield frame

    async def get(self, task, history=None):
        request = GetTaskRequest(id=task, history_length=history)
        return read_task(await self.client.get_task(request, context=self._context()))

    async def cancel(self, task):
        return read_task(await self.client.cancel_task(CancelTaskRequest(id=task), context=self._context()))

    async def subscribe(self, task):
        request = SubscribeToTaskRequest(id=task)
        async for frame in _reading(self.streaming_client.subscribe(request, context=self._context())):
            yield frame

    async def list(self, **filters):
        return await self.client.list_tasks(ListTasksRequest(**filters), context=self._context())

    async def set_push(self, task, name, url, token):
        config = TaskPushNotificationConfig(task_id=task, id=name, url=url, token=token)
        return read_webhook(await self.client.create_task_push_notification_config(config, context=self._context()))

    async def get_push(self, task, name):
        request = GetTaskPushNotificationConfigRequest(task_id=task, id=name)
        return read_webhook(await self.client.get_task_push_notification_config(request, context=self._context()))

    async def list_push(self, task):
        request = ListTaskPushNotificationConfigsRequest(task_id=task)
        answer = await self.client.list_task_push_notification_configs(request, context=self._context())
        return [read_webhook(config) for config in answer.configs]

    async def delete_push(self, task, name):
        request = DeleteTaskPushNotificationConfigRequest(task_id=task, id=name)
        await self.client.delete_task_push_notification_config(request, context=self._context())

    def read_delivery(self, body):
        # The parser refuses members that the SDK does not know.
        return read_frame(Parse(body, StreamResponse()))

    def promises_extended_card(self):
        return self.sdk_card.capabilities.extended_agent_card

    async def extended_card(self):
        card = self.sdk_card
        if not card.capabilities.extended_agent_card:
            # The SDK asks only if the card promises an extended one, so this client is given a card that does.
            card = type(card)()
            card.CopyFrom(self.sdk_card)
            card.capabilities.extended_agent_card = True
        self.client = self._client(card, streaming=False)
        return await self.client.get_extended_agent_card(GetExtendedAgentCardRequest(), context=self._context())

    async def refused(self, refusal, call):
        """The call must fail with exactly this error; returns the message and the data that came with it."""
        try:
            answer = await call
        except errors.A2AError as error:
            plain.equal(f'the error ({error})', type(error), getattr(errors, refusal.error))
            plain.equal('its code', errors.JSON_RPC_ERROR_CODE_MAP[type(error)], refusal.code)
            return error.message, read_error_info(error) if self.binding == 'grpc' else error.data
        raise AssertionError(f'wanted {refusal.error}, got an answer: {answer!r}')

    async def shut_out(self, status, call):
        """The call must fail because of this HTTP status, or the status of gRPC that stands for it; the SDK tells of it in
        the text of its error."""
        wanted = f'gRPC Error {plain.GRPC_STATUS[status]}:' if self.binding == 'grpc' else f'HTTP Error {status}:'
        try:
            answer = await call
        except A2AClientError as error:
            plain.holds(f'wanted {wanted}', error.message.startswith(wanted), error)
            return
        raise AssertionError(f'wanted status {status}, got an answer: {answer!r}')

    def request(self, content, task=None, context=None, history=None, immediately=False, webhook=None):
        parts = [plain.text(content)] if isinstance(content, str) else content
        return SendMessageRequest(
            message=Message(
                message_id=str(uuid.uuid4()),
                role=Role.ROLE_USER,
                parts=[write_part(part) for part in parts],
                task_id=task,
                context_id=context,
            ),
            configuration=SendMessageConfiguration(
                return_immediately=immediately,
                history_length=history,
                task_push_notification_config=webhook and write_webhook(webhook),
            ),
        )

    def _client(self, card, streaming):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http,
            grpc_channel_factory=self.channels.open,
            supported_protocol_bindings=[self.wire_binding],
        )
        return ClientFactory(config).create(card, self.caller.interceptors if self.caller else None)

    def open_channel_again(self):
        """For cases that changed what the channels are told."""
        self.client = self._client(self.sdk_card, streaming=False)

    def _context(self):
        return self.caller.context() if self.caller else None

    async def _send_once(self, request):
        frames = [frame async for frame in _reading(self.client.send_message(request, context=self._context()))]
        plain.equal('answers to one send', len(frames), 1)
        return frames[0]


async def _reading(frames):
    async with contextlib.aclosing(frames):
        async for frame in frames:
            yield read_frame(frame)


def read_error_info(error):
    """What the SDK leaves out of an error over gRPC; it is still in the exception behind it."""
    status = status_from_call(error.__cause__)
    info = ErrorInfo()
    for detail in status.details if status else []:
        detail.Unpack(info)
    return dict(info.metadata)


def read_token_url(flows):
    flow = flows.WhichOneof('flow')
    return flow and getattr(flows, flow).token_url


def read_frame(frame):
    kind = frame.WhichOneof('payload')
    if kind == 'task':
        return read_task(frame.task)
    if kind == 'message':
        return read_message(frame.message)
    if kind == 'status_update':
        event = frame.status_update
        return plain.Status(
            event.task_id, event.context_id, read_state(event.status.state), read_says(event.status), final=None
        )
    event = frame.artifact_update
    return plain.Chunk(
        event.task_id, event.context_id, read_artifact(event.artifact), event.append, event.last_chunk
    )


def read_task(task):
    return plain.Task(
        task.id,
        task.context_id,
        read_state(task.status.state),
        read_says(task.status),
        [read_artifact(artifact) for artifact in task.artifacts],
        [read_message(message) for message in task.history],
    )


def read_webhook(config):
    return plain.Webhook(config.task_id, config.id, config.url, config.token or None)


def write_webhook(webhook):
    return TaskPushNotificationConfig(id=webhook.id, url=webhook.url, token=webhook.token)


def read_state(state):
    return TaskState.Name(state).removeprefix('TASK_STATE_').lower().replace('_', '-')


def read_says(status):
    return read_message(status.message).text if status.HasField('message') else None


def read_message(message):
    return plain.Message(
        message.message_id,
        Role.Name(message.role).removeprefix('ROLE_').lower(),
        [read_part(part) for part in message.parts],
        message.task_id or None,
        message.context_id or None,
    )


def read_artifact(artifact):
    return plain.Artifact(artifact.artifact_id, artifact.name or None, [read_part(part) for part in artifact.parts])


def read_part(part):
    kind = part.WhichOneof('content')
    value = MessageToDict(part.data) if kind == 'data' else getattr(part, kind)
    return plain.Part(kind, value, part.filename or None, part.media_type or None, MessageToDict(part.metadata))


def write_part(part):
    if part.kind == 'text':
        written = new_text_part(part.value, media_type=part.media)
    elif part.kind == 'raw':
        written = new_raw_part(part.value, media_type=part.media, filename=part.name)
    elif part.kind == 'url':
        written = new_url_part(part.value, media_type=part.media, filename=part.name)
    else:
        written = new_data_part(part.value, media_type=part.media)
    written.metadata.update(part.metadata)
    return written

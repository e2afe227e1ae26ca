"""A2A 0.3 through the official SDK 0.3.26, read into plain values."""

import contextlib
import ssl

import grpc
import httpx

from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.client.transports.grpc import GrpcTransport
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.grpc import a2a_pb2
from a2a.utils import proto_utils
from google.protobuf.json_format import ParseDict

import plain

from channels import Channels
from kind_json import read, read_delivery, read_webhook, write_message, write_webhook
from security_v0_x import header, security, shut_out

BINDINGS = {
    'jsonrpc': types.TransportProtocol.jsonrpc,
    'http_json': types.TransportProtocol.http_json,
    'grpc': types.TransportProtocol.grpc,
}
TRANSPORTS = {'jsonrpc': JsonRpcTransport, 'http_json': RestTransport, 'grpc': GrpcTransport}
# Where the text of a gRPC error begins with another name than the class of 1.3.0 has.
NAMES = {'ExtendedAgentCardNotConfiguredError': 'AuthenticatedExtendedCardNotConfiguredError'}


class Peer:
    sdk = 'python 0.3.26'
    version = '0.3'

    def __init__(self, http, channels, resolver, card, binding, caller=None):
        self.http = http
        self.channels = channels
        self.caller = caller
        self.card_at = resolver.get_agent_card
        self.sdk_card = card
        self.binding = binding
        self.hides_status_of = () if binding == 'grpc' else ('subscribe',)
        self.wire_binding = BINDINGS[binding].value
        self.client = self._client(card, streaming=False)
        self.streaming_client = self._client(card, streaming=True)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, url, binding, caller=None, authority=None):
        # The SDK's own time limit of 5 s is for the whole wait of a blocking send; the runner's limit is enough.
        verify = ssl.create_default_context(cafile=authority)
        async with httpx.AsyncClient(timeout=None, verify=verify) as http, Channels(url, authority) as channels:
            resolver = A2ACardResolver(http, url)
            card = await resolver.get_agent_card()
            # These transports take interceptors and never ask them, so their users tell the HTTP client or the channel.
            if caller and caller.secret and binding == 'http_json':
                http.headers.update(header(card, caller))
            elif caller and caller.secret and binding == 'grpc':
                channels.metadata = [(name.lower(), value) for name, value in header(card, caller).items()]
            yield cls(http, channels, resolver, card, binding, caller)

    def card(self):
        card = self.sdk_card
        version = '.'.join(card.protocol_version.split('.')[:2])
        others = [(each.transport, version) for each in card.additional_interfaces or []]
        return plain.Card(
            name=card.name,
            version=card.version,
            streaming=card.capabilities.streaming,
            push=card.capabilities.push_notifications,
            skills=[skill.id for skill in card.skills],
            interfaces=[(card.preferred_transport, version), *others],
        )

    def security(self):
        """The schemes of the card by name, each as kind and detail, and which of them are enough."""
        return security(self.sdk_card)

    def uses_its_own_version(self):
        return type(self.client._transport) is TRANSPORTS[self.binding]

    async def send(self, content, **options):
        """A blocking send; options are those of `_send`."""
        frames = [frame async for frame in self._send(self.client, content, **options)]
        plain.equal('answers to one send', len(frames), 1)
        return frames[0]

    async def start(self, content, **options):
        """A send that does not wait for the task."""
        return await self.send(content, blocking=False, **options)

    async def stream(self, content, **options):
        async for frame in self._send(self.streaming_client, content, **options):
            yield frame

    async def get(self, task, history=None):
        request = types.TaskQueryParams(id=task, history_length=history)
        return self._read(await self.client.get_task(request, context=self._context()))

    async def cancel(self, task):
        return self._read(await self.client.cancel_task(types.TaskIdParams(id=task), context=self._context()))

    async def subscribe(self, task):
        request = types.TaskIdParams(id=task)
        async for frame in self._reading(self.streaming_client.resubscribe(request, context=self._context())):
            yield frame

    async def set_push(self, task, name, url, token):
        config = write_webhook(plain.Webhook(task, name, url, token))
        request = types.TaskPushNotificationConfig(task_id=task, push_notification_config=config)
        return read_webhook(await self.client.set_task_callback(request, context=self._context()))

    async def get_push(self, task, name):
        request = types.GetTaskPushNotificationConfigParams(id=task, push_notification_config_id=name)
        return read_webhook(await self.client.get_task_callback(request, context=self._context()))

    async def list_push(self, task):
        if self.binding == 'grpc':
            asked = a2a_pb2.ListTaskPushNotificationConfigRequest(parent=f'tasks/{task}')
            listed = (await self.client._transport.stub.ListTaskPushNotificationConfig(asked)).configs
            return [read_webhook(proto_utils.FromProto.task_push_notification_config(config)) for config in listed]
        request = types.ListTaskPushNotificationConfigRequest(
            id='1', params=types.ListTaskPushNotificationConfigParams(id=task)
        )
        answer = await self._call(request, 'GET', f'/v1/tasks/{task}/pushNotificationConfigs')
        if self.binding == 'jsonrpc':
            configs = types.ListTaskPushNotificationConfigSuccessResponse.model_validate(answer).result
        else:
            listed = ParseDict(answer, a2a_pb2.ListTaskPushNotificationConfigResponse()).configs
            configs = [proto_utils.FromProto.task_push_notification_config(config) for config in listed]
        return [read_webhook(config) for config in configs]

    async def delete_push(self, task, name):
        if self.binding == 'grpc':
            asked = a2a_pb2.DeleteTaskPushNotificationConfigRequest(
                name=f'tasks/{task}/pushNotificationConfigs/{name}'
            )
            await self.client._transport.stub.DeleteTaskPushNotificationConfig(asked)
            return
        params = types.DeleteTaskPushNotificationConfigParams(id=task, push_notification_config_id=name)
        request = types.DeleteTaskPushNotificationConfigRequest(id='1', params=params)
        answer = await self._call(request, 'DELETE', f'/v1/tasks/{task}/pushNotificationConfigs/{name}')
        if self.binding == 'jsonrpc':
            types.DeleteTaskPushNotificationConfigSuccessResponse.model_validate(answer)

    def read_delivery(self, body):
        return read_delivery(body)

    def promises_extended_card(self):
        return self.sdk_card.supports_authenticated_extended_card

    async def extended_card(self):
        # The SDK asks only if the card promises an extended one, so this client is given a card that does.
        card = self.sdk_card.model_copy(update={'supports_authenticated_extended_card': True})
        self.client = self._client(card, streaming=False)
        return await self.client.get_card(context=self._context())

    async def refused(self, refusal, call):
        """The call must fail with exactly this error; returns the message and the data that came with it."""
        try:
            answer = await call
        except A2AClientJSONRPCError as error:
            plain.holds('wanted an HTTP error', self.binding == 'jsonrpc', error)
            plain.equal(f'the code ({error})', error.error.code, refusal.code)
            return error.error.message, error.error.data
        except A2AClientHTTPError as error:
            plain.holds('wanted a JSON-RPC error', self.binding == 'http_json', error)
            plain.equal(f'the HTTP status ({error})', error.status_code, refusal.http)
            return self._http_refusal(refusal, error)
        except grpc.aio.AioRpcError as error:
            # The SDK hands out the error of grpcio as it is. All that 0.3 has is a code and a text.
            plain.holds('wanted another error', self.binding == 'grpc', error)
            plain.equal(f'the code ({error.details()})', error.code().name, refusal.grpc)
            name, _, message = error.details().partition(': ')
            plain.equal(f'the name in {error.details()}', name, NAMES.get(refusal.error, refusal.error))
            return message, None
        raise AssertionError(f'wanted {refusal.code}, got an answer: {answer!r}')

    async def shut_out(self, status, call):
        """The call must fail because of this HTTP status, or the status of gRPC that stands for it."""
        if self.binding != 'grpc':
            await shut_out(status, call)
            return
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            plain.equal(f'the status ({error.details()})', error.code().name, plain.GRPC_STATUS[status])
            return
        raise AssertionError(f'wanted status {status}, got an answer: {answer!r}')

    def _http_refusal(self, refusal, error):
        """The SDK keeps only the status, but the body is still in the exception behind it, unless it was a stream's."""
        try:
            body = error.__cause__.response.json()
        except (AttributeError, httpx.ResponseNotRead):
            return None, None
        plain.equal(f'the code in {body}', body.get('code'), refusal.code)
        return body.get('message'), body.get('data')

    async def _send(self, client, content, task=None, context=None, history=None, blocking=True, webhook=None):
        message = write_message(content, task, context)
        configuration = types.MessageSendConfiguration(blocking=blocking, history_length=history)
        if webhook:
            # Where the SDK's users say it: in a configuration of one message, the SDK itself makes a dict of it and
            # chokes on that.
            client = self._client(self.sdk_card, client is self.streaming_client, [write_webhook(webhook)])
        events = client.send_message(message, configuration=configuration, context=self._context())
        async for frame in self._reading(events):
            yield frame

    async def _call(self, request, verb, path):
        """The SDK's client has no call for this method, so the request goes out by hand, in the SDK's own spelling."""
        transport = self.client._transport
        if self.binding == 'jsonrpc':
            payload = request.model_dump(mode='json', exclude_none=True)
            payload, options = await transport._apply_interceptors(request.method, payload, {}, self._context())
            answer = await self.http.post(transport.url, json=payload, **options)
            if answer.is_error:
                raise A2AClientHTTPError(answer.status_code, answer.text)
            answer = answer.json()
            if 'error' in answer:
                raise A2AClientJSONRPCError(types.JSONRPCErrorResponse.model_validate(answer))
            return answer
        try:
            answer = (await self.http.request(verb, transport.url + path)).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise A2AClientHTTPError(error.response.status_code, str(error)) from error
        return answer.json() if answer.content else None

    def polling_client(self):
        return self._client(self.sdk_card, streaming=False, is_polling=True)

    def _client(self, card, streaming, webhooks=(), is_polling=False):
        config = ClientConfig(
            streaming=streaming,
            polling=is_polling,
            httpx_client=self.http,
            grpc_channel_factory=self.channels.open,
            supported_transports=[BINDINGS[self.binding]],
            push_notification_configs=list(webhooks),
        )
        return ClientFactory(config).create(card, interceptors=self.caller.interceptors if self.caller else None)

    def open_channel_again(self):
        """For cases that changed what the channels are told."""
        self.client = self._client(self.sdk_card, streaming=False)

    def _context(self):
        return self.caller.context() if self.caller else None

    async def _reading(self, events):
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, tuple):
                    task, update = event
                    # The SDK folds every later event into this very task, so it is read before the next one comes.
                    event = task if update is None else update
                yield self._read(event)

    def _read(self, event):
        return read(event, self.binding)

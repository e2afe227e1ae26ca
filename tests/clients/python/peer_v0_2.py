"""A2A 0.2 through the official SDK 0.2.16, read into plain values.

This SDK hands out envelopes: an error is returned and not raised, and nobody compares the ids of request and answer.
Both happen here.
"""

import contextlib
import ssl
import uuid

import httpx

from a2a import types
from a2a.client import A2ACardResolver, A2AClient, A2AClientHTTPError

import plain

from kind_json import read, read_delivery, read_webhook, write_message, write_webhook
from security_v0_x import header, security, shut_out

# Releases before 0.2.6 allow no configuration without them.
MODES = ['text/plain', 'application/json']


class Refused(Exception):
    def __init__(self, error):
        super().__init__(f'{error.code} {error.message}')
        self.error = error


class Peer:
    sdk = 'python 0.2.16'
    version = '0.2'
    hides_status_of = ('stream', 'subscribe')
    binding = 'jsonrpc'

    def __init__(self, http, url, card, caller=None):
        self.http = http
        self.url = url
        self.sdk_card = card
        self.caller = caller
        self.client = A2AClient(http, agent_card=card, interceptors=caller and caller.interceptors)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, url, binding, caller=None, authority=None):
        if binding != cls.binding:
            raise ValueError(f'this SDK speaks {cls.binding} only')
        # The SDK's own time limit of 5 s is for the whole wait of a blocking send; the runner's limit is enough.
        async with httpx.AsyncClient(timeout=None, verify=ssl.create_default_context(cafile=authority)) as http:
            yield cls(http, url, await A2ACardResolver(http, url).get_agent_card(), caller)

    def at(self, path):
        """The same peer with a client that was given this address instead of a card."""
        other = Peer(self.http, self.url, self.sdk_card)
        other.client = A2AClient(self.http, url=self.url + path)
        return other

    def card(self):
        card = self.sdk_card
        return plain.Card(
            name=card.name,
            version=card.version,
            streaming=card.capabilities.streaming,
            push=card.capabilities.push_notifications,
            skills=[skill.id for skill in card.skills],
            interfaces=None,
        )

    def security(self):
        """The schemes of the card by name, each as kind and detail, and which of them are enough."""
        return security(self.sdk_card)

    async def card_at(self, base, path):
        """The card below an address, or the HTTP error that came instead."""
        try:
            return await A2ACardResolver(self.http, base).get_agent_card(path)
        except A2AClientHTTPError as error:
            return error

    def promises_extended_card(self):
        return self.sdk_card.supports_authenticated_extended_card

    async def extended_card(self):
        # The client has no call for it. Its users ask the resolver, with the header in their hands.
        shown = header(self.sdk_card, self.caller) if self.caller.secret else {}
        resolver = A2ACardResolver(self.http, self.url)
        return await resolver.get_agent_card('/agent/authenticatedExtendedCard', http_kwargs={'headers': shown})

    async def send(self, content, number=None, **options):
        """A blocking send; `number` is the id of the request, and the options are those of `_params`."""
        request = types.SendMessageRequest(id=number or new_id(), params=self._params(content, **options))
        return self._read(request, await self.client.send_message(request, context=self._context()))

    async def start(self, content, **options):
        """A send that does not wait for the task."""
        return await self.send(content, blocking=False, **options)

    async def stream(self, content, **options):
        request = types.SendStreamingMessageRequest(id=new_id(), params=self._params(content, **options))
        async for frame in self._frames(request):
            yield frame

    async def get(self, task, history=None):
        request = types.GetTaskRequest(id=new_id(), params=types.TaskQueryParams(id=task, history_length=history))
        return self._read(request, await self.client.get_task(request, context=self._context()))

    async def cancel(self, task):
        request = types.CancelTaskRequest(id=new_id(), params=types.TaskIdParams(id=task))
        return self._read(request, await self.client.cancel_task(request, context=self._context()))

    async def subscribe(self, task):
        # The client has no call for this method, but its streaming call sends any request that it is given.
        request = types.TaskResubscriptionRequest(id=new_id(), params=types.TaskIdParams(id=task))
        async for frame in self._frames(request):
            yield frame

    async def set_push(self, task, name, url, token):
        config = write_webhook(plain.Webhook(task, name, url, token))
        params = types.TaskPushNotificationConfig(task_id=task, push_notification_config=config)
        request = types.SetTaskPushNotificationConfigRequest(id=new_id(), params=params)
        return read_webhook(result(request, await self.client.set_task_callback(request, context=self._context())))

    async def get_push(self, task, _name):
        # The task alone: releases before 0.2.5 have no name for one config of several.
        request = types.GetTaskPushNotificationConfigRequest(id=new_id(), params=types.TaskIdParams(id=task))
        return read_webhook(result(request, await self.client.get_task_callback(request, context=self._context())))

    async def list_push(self, task):
        params = types.ListTaskPushNotificationConfigParams(id=task)
        request = types.ListTaskPushNotificationConfigRequest(id=new_id(), params=params)
        configs = await self._call(request, types.ListTaskPushNotificationConfigResponse)
        return [read_webhook(config) for config in configs]

    async def delete_push(self, task, name):
        params = types.DeleteTaskPushNotificationConfigParams(id=task, push_notification_config_id=name)
        request = types.DeleteTaskPushNotificationConfigRequest(id=new_id(), params=params)
        await self._call(request, types.DeleteTaskPushNotificationConfigResponse)

    def read_delivery(self, body):
        return read_delivery(body)

    async def refused(self, refusal, call):
        """The call must fail with exactly this error; returns the message and the data that came with it."""
        try:
            answer = await call
        except Refused as refused:
            plain.equal(f'the code ({refused})', refused.error.code, refusal.code)
            return refused.error.message, refused.error.data
        raise AssertionError(f'wanted {refusal.code}, got an answer: {answer!r}')

    async def shut_out(self, status, call):
        """The call must fail because of this HTTP status."""
        await shut_out(status, call)

    def _context(self):
        return self.caller.context() if self.caller else None

    def _params(self, content, task=None, context=None, history=None, blocking=True, modes=MODES, webhook=None):
        """What a send says; without modes there is no configuration at all."""
        configuration = None
        if modes is not None:
            configuration = types.MessageSendConfiguration(
                accepted_output_modes=modes,
                blocking=blocking,
                history_length=history,
                push_notification_config=webhook and write_webhook(webhook),
            )
        return types.MessageSendParams(message=write_message(content, task, context), configuration=configuration)

    async def _frames(self, request):
        sending = self.client.send_message_streaming(request, context=self._context())
        async with contextlib.aclosing(sending) as responses:
            async for response in responses:
                yield self._read(request, response)

    async def _call(self, request, response):
        """For methods that the SDK has types for, but no call in its client."""
        payload = request.model_dump(mode='json', exclude_none=True)
        payload, options = await self.client._apply_interceptors(request.method, payload, {}, self._context())
        answer = await self.client._send_request(payload, options)
        return result(request, response.model_validate(answer))

    def _read(self, request, response):
        return read(result(request, response), self.binding)


def new_id():
    return str(uuid.uuid4())


def result(request, response):
    """What the envelope holds."""
    envelope = response.root
    plain.equal('the id of the answer', envelope.id, request.id)
    if isinstance(envelope, types.JSONRPCErrorResponse):
        raise Refused(envelope.error)
    return envelope.result

"""A client made of descriptors: it asks the server what there is, and builds every message from the answer.

Messages are written and read as dictionaries, in the spelling of ProtoJSON.
"""

import contextlib
import json

import grpc

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2

V1 = 'lf.a2a.v1.A2AService'
V0_3 = 'a2a.v1.A2AService'


class Peer:
    sdk = 'reflection'
    binding = 'grpc'

    def __init__(self, address, channel):
        self.address = address
        self.channel = channel
        self.pool = descriptor_pool.DescriptorPool()
        self.called = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, url, binding, authority=None):
        if binding != 'grpc':
            raise ValueError('reflection is a service of gRPC')
        scheme, address = url.split('://')
        if scheme == 'https':
            with open(authority, 'rb') as file:
                opened = grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(file.read()))
        else:
            opened = grpc.aio.insecure_channel(address)
        async with opened as channel:
            yield cls(address, channel)

    async def reflect(self, *questions, version='v1', metadata=None):
        """The answers to the questions, which go out on one stream. Both versions of the service have the same messages."""
        answers = []
        call = self.channel.stream_stream(
            f'/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo',
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )(metadata=metadata)
        for question in questions:
            await call.write(reflection_pb2.ServerReflectionRequest(**question))
            answer = await call.read()
            if answer is grpc.aio.EOF:
                break
            answers.append(answer)
        await call.done_writing()
        if await call.read() is not grpc.aio.EOF:
            raise AssertionError('more answers than questions')
        return answers

    async def services(self, version='v1', metadata=None):
        [answer] = await self.reflect({'list_services': ''}, version=version, metadata=metadata)
        return sorted(service.name for service in answer.list_services_response.service)

    async def describe(self, service, metadata=None):
        """The descriptor of the service, with all that it needs."""
        [answer] = await self.reflect({'file_containing_symbol': service}, metadata=metadata)
        await self._add(answer, metadata)
        return self.pool.FindServiceByName(service)

    async def unary(self, service, method, message=None, **options):
        """The answer to one call as a dictionary."""
        call = await self._call(service, method, message, options)
        return _read(await call)

    async def stream(self, service, method, message=None, **options):
        """A call whose answers come one by one: `frames` are dictionaries, `first_event_id` is the number of the first."""
        return Stream(await self._call(service, method, message, options))

    async def _call(self, service, method, message, options):
        descriptor = (await self._service(service, options.get('metadata'))).FindMethodByName(method)
        self.called.add((service, method))
        open_call = self.channel.unary_stream if descriptor.server_streaming else self.channel.unary_unary
        request = ParseDict(message or {}, GetMessageClass(descriptor.input_type)())
        return open_call(
            f'/{service}/{method}',
            request_serializer=lambda written: written.SerializeToString(),
            response_deserializer=GetMessageClass(descriptor.output_type).FromString,
        )(request, **options)

    async def _service(self, service, metadata):
        try:
            return self.pool.FindServiceByName(service)
        except KeyError:
            return await self.describe(service, metadata)

    async def _add(self, answer, metadata):
        """Adds files to the pool, and first what they import, which a server may leave out."""
        files = {}
        for content in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(content)
            files[file.name] = file
        while missing := {name for file in files.values() for name in file.dependency} - set(files):
            for name in missing:
                [answer] = await self.reflect({'file_by_filename': name}, metadata=metadata)
                for content in answer.file_descriptor_response.file_descriptor_proto:
                    file = descriptor_pb2.FileDescriptorProto.FromString(content)
                    files[file.name] = file
        added = set()

        def add(file):
            if file.name not in added:
                added.add(file.name)
                for name in file.dependency:
                    add(files[name])
                self.pool.Add(file)

        for file in files.values():
            add(file)


class Stream:
    def __init__(self, call):
        self.call = call

    async def first_event_id(self):
        return int(dict(await self.call.initial_metadata())['first-event-id'])

    async def next(self):
        """The next frame, or None at the end."""
        frame = await self.call.read()
        return None if frame is grpc.aio.EOF else _read(frame)

    async def rest(self):
        frames = []
        while (frame := await self.next()) is not None:
            frames.append(frame)
        return frames

    def cut(self):
        self.call.cancel()


class SecuredServer:
    """The server that asks for credentials, over TLS, as its description tells of it."""

    def __init__(self, peer, told):
        self.peer = peer
        self.told = told

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, peer, description, binding):
        with open(description) as file:
            told = json.load(file)
        async with peer.connect(told['url'], binding, told['authority']) as connected:
            yield cls(connected, told)

    def metadata(self, name):
        """What one of the known callers shows."""
        caller = self.told['callers'][name]
        if caller['scheme'] == 'apiKey':
            return [('x-api-key', caller['secret'])]
        return [('authorization', f'Bearer {caller["secret"]}')]


def _read(message):
    return MessageToDict(message)

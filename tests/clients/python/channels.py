"""Where the gRPC transport of an SDK gets its channels, with or without TLS; all of them are closed at the end."""

import asyncio

import grpc


class Channels:
    def __init__(self, url, authority=None, metadata=()):
        """`url` says whether there is TLS. `authority` is the PEM file that is trusted instead of what the machine trusts, and
        `metadata` goes along with every call, for SDKs that have no other way."""
        self.is_secure = url.startswith('https:')
        self.authority = authority
        self.metadata = metadata
        self._opened = []

    def open(self, address):
        if self.is_secure:
            channel = grpc.aio.secure_channel(address, self._credentials())
        else:
            channel = grpc.aio.insecure_channel(address)
        self._opened.append(channel)
        return channel

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await asyncio.gather(*(channel.close() for channel in self._opened))

    def _credentials(self):
        trusted = None
        if self.authority:
            with open(self.authority, 'rb') as file:
                trusted = file.read()
        credentials = grpc.ssl_channel_credentials(trusted)
        if not self.metadata:
            return credentials
        shown = grpc.metadata_call_credentials(lambda _, tell: tell(self.metadata, None))
        return grpc.composite_channel_credentials(credentials, shown)

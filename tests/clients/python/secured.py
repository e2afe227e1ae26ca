"""The server that lets nobody in without a credential, over HTTPS, and callers with credentials for it.

A caller's secret lies in the SDK's own store, under the name of a scheme of the card. The SDK's own interceptor looks for
what the card asks for in there, and adds the header. It finds the store by the session in the context of a call.
"""

import asyncio
import contextlib
import json

import httpx

from a2a.client import AuthInterceptor, ClientCallContext, InMemoryContextCredentialStore

SESSION = 'the session of the caller'


class Caller:
    """Who calls: `interceptors` go into a client, and `context()` into every call of it."""

    def __init__(self):
        self._store = InMemoryContextCredentialStore()
        self.interceptors = [AuthInterceptor(self._store)]
        self.scheme = self.secret = None

    @classmethod
    async def with_secret(cls, scheme, secret):
        caller = cls()
        caller.scheme, caller.secret = scheme, secret
        await caller._store.set_credentials(SESSION, scheme, secret)
        return caller

    def context(self):
        # A new one for each call: the interceptor of 1.3.0 leaves the header in it.
        return ClientCallContext(state={'sessionId': SESSION})


class SecuredServer:
    """What the cases are given: `peer(name)` is the SDK in the hands of one of the known callers."""

    def __init__(self, peer, told, binding, closing):
        self.told = told
        self._peer, self._binding, self._closing = peer, binding, closing

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, peer, description, binding):
        with open(description) as file:
            told = json.load(file)
        async with contextlib.AsyncExitStack() as closing:
            yield cls(peer, told, binding, closing)

    async def peer(self, name, binding=None):
        known = self.told['callers'][name]
        return await self._connect(await Caller.with_secret(known['scheme'], known['secret']), binding=binding)

    async def peer_with(self, scheme, secret):
        return await self._connect(await Caller.with_secret(scheme, secret))

    async def nobody(self):
        """The SDK with its interceptor, and nothing in the store."""
        return await self._connect(Caller())

    async def stranger(self):
        """The SDK on a machine that does not trust the authority of the server; connecting fails."""
        return await self._connect(Caller(), is_trusting=False)

    async def token_of_issuer(self, **fields):
        """A token as a program gets one that knows no more than the card: it asks where the card says."""
        while (endpoint := (await self.nobody()).security()[0]['oauth2'][1]) is None:
            # The server has not read what the issuer says of itself.
            await asyncio.sleep(0.1)
        provider = self.told['provider']
        async with httpx.AsyncClient() as http:
            client = {'client_id': provider['client_id'], 'client_secret': provider['client_secret']}
            form = {'grant_type': 'client_credentials', **client, **fields}
            return (await http.post(endpoint, data=form)).raise_for_status().json()['access_token']

    async def _connect(self, caller, is_trusting=True, binding=None):
        authority = self.told['authority'] if is_trusting else None
        connecting = self._peer.connect(self.told['url'], binding or self._binding, caller=caller, authority=authority)
        return await self._closing.enter_async_context(connecting)

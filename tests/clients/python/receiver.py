"""A receiver of webhooks on this machine: it keeps every request, and answers 204."""

import asyncio
import contextlib

from dataclasses import dataclass


@dataclass
class Delivery:
    verb: str
    path: str
    headers: dict  # names in lower case
    body: bytes


class Receiver:
    def __init__(self):
        self.deliveries = asyncio.Queue()
        self.address = None
        self.connections = {}  # task and writer

    def url(self, path='/hook'):
        return self.address + path

    async def until(self, read, state):
        """All deliveries up to the one in this state: pairs of the request and what `read` makes of its body."""
        seen = []
        while not seen or seen[-1][1].state != state:
            delivery = await self.deliveries.get()
            seen.append((delivery, read(delivery.body)))
        return seen

    async def serve(self, reader, writer):
        self.connections[asyncio.current_task()] = writer
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1')
                first, *lines = head.strip().split('\r\n')
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines)}
                body = await reader.readexactly(int(headers.get('content-length', 0)))
                verb, path, _ = first.split(' ')
                self.deliveries.put_nowait(Delivery(verb, path, headers, body))
                writer.write(b'HTTP/1.1 204 No Content\r\n\r\n')
                await writer.drain()
        writer.close()

    async def close(self):
        for writer in self.connections.values():
            writer.close()
        await asyncio.gather(*self.connections)


@contextlib.asynccontextmanager
async def receiving():
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, '127.0.0.1', 0)
    receiver.address = 'http://{}:{}'.format(*server.sockets[0].getsockname())
    try:
        yield receiver
    finally:
        server.close()
        await receiver.close()

"""Runs the application of an SDK: `SCRIPT --port N [--binding jsonrpc|http_json]`.

A server binds 127.0.0.1, prints its address as the one line of its output when it is ready, and ends with SIGTERM or
with its standard input, so it cannot outlive whoever started it. Without `--binding` its card offers all that it
speaks.
"""

import argparse
import os
import socket
import sys
import threading

import uvicorn


def main(bindings, application):
    """`application(url, bindings)` builds the application for the address and the bindings that its card offers."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--binding', choices=bindings)
    arguments = parser.parse_args()
    # The card holds the address, so the socket comes first.
    listener = socket.create_server(('127.0.0.1', arguments.port))
    # asyncio does so for its own sockets. Without it each answer waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    url = f'http://127.0.0.1:{listener.getsockname()[1]}'
    offered = [arguments.binding] if arguments.binding else bindings
    served = application(url, offered)
    # A stream that a client forgot must not hold the end of the server.
    config = uvicorn.Config(served, log_level='warning', lifespan='off', timeout_graceful_shutdown=1)
    server = AnnouncingServer(config)
    server.url = url
    threading.Thread(target=stop_with_input, args=[server], daemon=True).start()
    server.run(sockets=[listener])


class AnnouncingServer(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        print(self.url, flush=True)


def stop_with_input(server):
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True

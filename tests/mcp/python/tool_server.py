#!/usr/bin/env python3
"""Tools of the official SDK for a model: `tool_server.py` on standard input and output, `tool_server.py PORT` over HTTP."""

import asyncio
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer('tools')


@server.tool()
def shell(command: str) -> str:
    """Runs a command, or rather says that it did."""
    return f'it ran {len(command.split())} words'


@server.tool()
async def outside(command: str) -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return command


@server.tool()
def fails() -> str:
    """Always fails."""
    raise ValueError('no luck')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        server.run('streamable-http', host='127.0.0.1', port=int(sys.argv[1]))
    else:
        server.run('stdio')

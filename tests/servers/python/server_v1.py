"""A server of A2A 1.0, built on the official Python SDK 1.3.0; `serving.py` says how it is started."""

import sys

# The scripts live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

import serving
import spelling_v1

from words import WordsAgent

PATHS = {'jsonrpc': '/a2a/jsonrpc', 'http_json': '/a2a/rest'}
NAMES = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}


def application(url, bindings):
    interfaces = [
        AgentInterface(url=url + PATHS[binding], protocol_binding=NAMES[binding], protocol_version='1.0')
        for binding in bindings
    ]
    card = AgentCard(
        name='Words',
        description='Obeys the first word of a message',
        version='1.0.0',
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='words', name='Words', description='Obeys words', tags=['test'])],
    )
    handler = DefaultRequestHandler(WordsAgent(spelling_v1), InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    if 'jsonrpc' in bindings:
        routes += create_jsonrpc_routes(handler, PATHS['jsonrpc'])
    if 'http_json' in bindings:
        routes += create_rest_routes(handler, path_prefix=PATHS['http_json'])
    return Starlette(routes=routes)


serving.main(['jsonrpc', 'http_json'], application)

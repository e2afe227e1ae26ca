"""A server of A2A 0.3, built on the official Python SDK 0.3.26; `serving.py` says how it is started."""

import sys

# The scripts live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

import serving
import spelling_v0_x

from words import WordsAgent

PATHS = {'jsonrpc': '/a2a/jsonrpc', 'http_json': '/a2a/rest'}
NAMES = {'jsonrpc': 'JSONRPC', 'http_json': 'HTTP+JSON'}


def application(url, bindings):
    interfaces = [AgentInterface(url=url + PATHS[binding], transport=NAMES[binding]) for binding in bindings]
    card = AgentCard(
        name='Words',
        description='Obeys the first word of a message',
        version='1.0.0',
        url=interfaces[0].url,
        preferred_transport=interfaces[0].transport,
        additional_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='words', name='Words', description='Obeys words', tags=['test'])],
    )
    handler = DefaultRequestHandler(WordsAgent(spelling_v0_x), InMemoryTaskStore())
    # This one serves the card too; a binding that the card does not offer is where nobody looks for it.
    application = A2AStarletteApplication(card, handler).build(rpc_url=PATHS['jsonrpc'])
    application.mount(PATHS['http_json'], A2ARESTFastAPIApplication(card, handler).build())
    return application


serving.main(['jsonrpc', 'http_json'], application)

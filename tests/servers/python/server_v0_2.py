"""A server of A2A 0.2, built on the official Python SDK 0.2.16; `serving.py` says how it is started."""

import sys

# The scripts live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentSkill

import serving
import spelling_v0_x

from words import WordsAgent


def application(url, _bindings):
    card = AgentCard(
        name='Words',
        description='Obeys the first word of a message',
        version='1.0.0',
        url=f'{url}/',
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='words', name='Words', description='Obeys words', tags=['test'])],
    )
    handler = DefaultRequestHandler(WordsAgent(spelling_v0_x), InMemoryTaskStore())
    return A2AStarletteApplication(card, handler).build()


serving.main(['jsonrpc'], application)

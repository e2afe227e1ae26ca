"""A2A 0.2, as the official Python SDK 0.2.16 speaks it: `v0_2.py --url URL --binding jsonrpc --secured FILE`."""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases import cancel, card, context, credentials, push, refusals, send, stream, subscribe, turns, v0_2_only, v0_x
from peer_v0_2 import Peer
from secured import SecuredServer

SHARED = card, send, stream, subscribe, turns, cancel, context, push, refusals

report.main(Peer, *SHARED, v0_x, v0_2_only, server=SecuredServer, secured=[credentials])

"""A2A 0.3, as the official Python SDK 0.3.26 speaks it: `v0_3.py --url URL --binding jsonrpc|http_json|grpc --secured FILE`."""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases import cancel, card, context, credentials, interfaces, push, refusals, send, stream, subscribe, turns
from cases import grpc_tls, v0_3_grpc, v0_3_only, v0_3_signing, v0_x
from peer_v0_3 import Peer
from secured import SecuredServer

SHARED = card, interfaces, send, stream, subscribe, turns, cancel, context, push, refusals

OWN = v0_x, v0_3_only, v0_3_signing, v0_3_grpc

report.main(Peer, *SHARED, *OWN, server=SecuredServer, secured=[credentials, grpc_tls])

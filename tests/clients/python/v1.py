"""A2A 1.0, as the official Python SDK 1.3.0 speaks it: `v1.py --url URL --binding jsonrpc|http_json|grpc --secured FILE`."""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases import cancel, card, context, credentials, interfaces, push, refusals, send, stream, subscribe, turns
from cases import grpc_tls, v1_agents, v1_compat, v1_credentials, v1_grpc, v1_grpc_card, v1_list, v1_only, v1_signing
from peer_v1 import Peer
from secured import SecuredServer

SHARED = card, interfaces, send, stream, subscribe, turns, cancel, context, push, refusals

OWN = v1_list, v1_only, v1_agents, v1_compat, v1_signing, v1_grpc

report.main(Peer, *SHARED, *OWN, server=SecuredServer, secured=[credentials, v1_credentials, grpc_tls, v1_grpc_card])

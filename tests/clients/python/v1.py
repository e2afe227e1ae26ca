"""A2A 1.0, as the official Python SDK 1.3.0 speaks it: `v1.py --url URL --binding jsonrpc|http_json --secured FILE`."""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases import cancel, card, context, credentials, interfaces, push, refusals, send, stream, subscribe, turns
from cases import v1_compat, v1_credentials, v1_list, v1_only, v1_signing
from peer_v1 import Peer

SHARED = card, interfaces, send, stream, subscribe, turns, cancel, context, push, refusals

report.main(Peer, *SHARED, v1_list, v1_only, v1_compat, v1_signing, secured=[credentials, v1_credentials])

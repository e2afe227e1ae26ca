"""A gRPC client that knows no A2A, only what reflection tells: `reflection.py --url URL --binding grpc --secured FILE`."""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases.generic_grpc import calls, compression, deadlines, errors, health, secured, services, streams
from reflection_peer import Peer, SecuredServer

report.main(
    Peer, services, calls, streams, deadlines, compression, errors, health, server=SecuredServer, secured=[secured]
)

"""Requests that are compressed with gzip; the answers then are, too."""

import grpc

from cases.generic_grpc.a2a import VERSIONS, streamed_text, text_of
from cases.generic_grpc.refusals import refused
from plain import chunks, equal, holds

GZIP = grpc.Compression.Gzip


async def compressed_requests_are_read(peer):
    for version in VERSIONS:
        # As large as a message may be that is compressed in the answer, and larger.
        for length in (5, 20_000, 300_000):
            words = 'x' * length
            answer = await peer.unary(version.service, 'SendMessage', version.send(words), compression=GZIP)
            equal('text', text_of(answer['task']['artifacts'][0]) == f'echo: {words}', True)


async def compressed_requests_are_streamed(peer):
    for version in VERSIONS:
        request = version.send('stream 50 0')
        stream = await peer.stream(version.service, 'SendStreamingMessage', request, compression=GZIP)
        equal('text', streamed_text(await stream.rest()), chunks(50))
        words = 'y' * 5000
        stream = await peer.stream(version.service, 'SendStreamingMessage', version.send(words), compression=GZIP)
        equal('a long frame', streamed_text(await stream.rest()) == f'echo: {words}', True)


async def another_compression_is_refused_with_those_there_are(peer):
    for version in VERSIONS:
        request = version.send('z' * 5000)
        error = await refused(peer, version.service, 'SendMessage', request, 'UNIMPLEMENTED', compression=grpc.Compression.Deflate)
        said = error.details() + str(error.trailing_metadata())
        holds('what the server has', 'it has gzip and identity' in said, said)

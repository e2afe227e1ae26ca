"""What signed cards need in every version: the keys of the server, a server with a card, and `sabir card --verify`."""

import asyncio
import base64
import contextlib
import http.server
import json
import os
import threading

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from jwt.algorithms import ECAlgorithm, OKPAlgorithm
from jwt.api_jwk import PyJWK

# What differs between parsers of JSON: numbers, escapes, the order of names beyond the first plane, what is empty.
PARAMETERS = {
    'numbers': [0, -0.0, 1.0, 1e21, 1e-7, 0.1, 123456789.125, 5e-324, 9007199254740991, -1.5],
    'text': 'é \u20ac \u2028 \U0001f600 "\\/ \x01\x7f\n',
    '\ufb33': 1,
    '\U0001f600': 2,
    'é': {'b': True, 'a': False},
    'empty': {'list': [], 'text': '', 'object': {}, 'nothing': None},
}


def keys():
    """A private key of each algorithm."""
    return [('ES256', ec.generate_private_key(ec.SECP256R1())), ('EdDSA', ed25519.Ed25519PrivateKey.generate())]


def published(alg, key):
    """The key set of a private key."""
    algorithm = ECAlgorithm if alg == 'ES256' else OKPAlgorithm
    return {'keys': [json.loads(algorithm.to_jwk(key.public_key())) | {'kid': 'k', 'alg': alg, 'use': 'sig'}]}


async def keys_by_id(http, signatures):
    """The keys that the signatures name, as verifiers of the SDK ask for them."""
    sets = {}
    for signature in signatures:
        header = json.loads(base64.urlsafe_b64decode(signature.protected + '=='))
        sets[header['jku']] = (await http.get(header['jku'])).json()
    keys = {key['kid']: PyJWK.from_dict(key) for each in sets.values() for key in each['keys']}
    return lambda kid, _: keys[kid]


@contextlib.contextmanager
def serving(documents):
    """A server with these documents by path; they may be set after it has started. Gives its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(documents.get(self.path)).encode()
            self.send_response(200 if self.path in documents else 404)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f'http://127.0.0.1:{server.server_port}'
    finally:
        server.shutdown()
        server.server_close()


async def sabir_verifies(url):
    """Runs `sabir card URL --verify`: the exit code and what it printed."""
    program = os.environ['SABIR']
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(program, 'card', url, '--verify', stdout=pipe, stderr=pipe)
    out, err = await child.communicate()
    return child.returncode, json.loads(out) if out else err.decode()

"""Sabir's client commands against a server that an official SDK built, and that server by itself.

`suite.py --url URL --version 1.0|0.3|0.2 --binding jsonrpc|http_json --sabir PATH` needs nothing but Python. It prints
one line per case, and `N passed, N failed` at the end. The probes speak HTTP by themselves: when one fails, the server
is to blame, and not Sabir.

`cargo xtask test servers` sets up the SDKs and runs the suite against each server. After that one server can be started
by hand, which prints its address and ends with its input:

    target/clients/python-0.3.26/bin/python tests/servers/python/server_v0_3.py --binding http_json
    node target/clients/js-1.3.0/servers/server_v1.mjs
"""

import argparse
import pathlib
import signal
import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import commands
import probes

from command_runner import Sabir
from raw_client import RawClient

# A server that hangs must not hang us.
SECONDS_PER_CASE = 30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--url', required=True)
    parser.add_argument('--version', required=True, choices=['1.0', '0.3', '0.2'])
    parser.add_argument('--binding', required=True, choices=['jsonrpc', 'http_json'])
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, out_of_time)
    sabir = Sabir(arguments.sabir.resolve(), arguments.url, arguments.version, arguments.binding)
    passed = failed = 0
    for name, case in [*probe_cases(arguments), *command_cases(arguments, sabir)]:
        if arguments.only not in name:
            continue
        reason = run(case)
        passed, failed = passed + (reason is None), failed + (reason is not None)
        print(f'ok - {name}' if reason is None else f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def probe_cases(arguments):
    def client():
        return RawClient(arguments.url, arguments.version, arguments.binding)

    for probe in probes.PROBES:
        yield f'probe: {probe.__name__.replace("_", " ")}', lambda probe=probe: probe(client())


def command_cases(arguments, sabir):
    for row in commands.ROWS:
        if arguments.version in row.versions:
            yield f'sabir: {row.name}', lambda row=row: sabir.check(row.steps)


def run(case):
    signal.alarm(SECONDS_PER_CASE)
    try:
        case()
    except AssertionError as error:
        return one_line(str(error))
    except Exception as error:  # whatever it is, it is the reason
        return one_line(f'{type(error).__name__}: {error}')
    finally:
        signal.alarm(0)
    return None


def out_of_time(*_):
    raise TimeoutError(f'not over after {SECONDS_PER_CASE} s')


def one_line(text, limit=1500):
    return ' '.join(text.split())[:limit]


main()

"""Sabir as the client of a server that an official SDK built, and that server by itself.

`suite.py --url URL --sdk NAME --version 1.0|0.3|0.2 --binding jsonrpc|http_json --sabir PATH` needs nothing but Python.
It prints one line per case, and `N passed, N failed` at the end. Names of cases begin with what is tried:

- `probe`: the server; these speak HTTP by themselves, so when one fails, the server is to blame and not Sabir;
- `sabir`: the client commands;
- `check`: `sabir check`, on the server;
- `front`: a Sabir in front of the server, with clients and commands that speak to it in every version.

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
import conformance
import crashes
import front_cases
import front_commands
import probes

from command_runner import Sabir
from front import DIALECTS, Front
from raw_client import RawClient

# A server that hangs must not hang us.
SECONDS_PER_CASE = 30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--url', required=True)
    parser.add_argument('--sdk', required=True, help='what the server is built on, such as python-1.3.0')
    parser.add_argument('--version', required=True, choices=['1.0', '0.3', '0.2'])
    parser.add_argument('--binding', required=True, choices=['jsonrpc', 'http_json'])
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, out_of_time)
    sabir = Sabir(arguments.sabir.resolve(), arguments.url, arguments.version, arguments.binding)
    passed = failed = 0
    for name, case in all_cases(arguments, sabir):
        if arguments.only not in name:
            continue
        reason = run(case)
        passed, failed = passed + (reason is None), failed + (reason is not None)
        print(f'ok - {name}' if reason is None else f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def all_cases(arguments, sabir):
    yield from probe_cases(arguments)
    yield from command_cases(arguments, sabir)
    name = 'check: a server of an SDK has no errors'
    yield name, lambda: conformance.a_server_of_an_sdk_has_no_errors(sabir, arguments.sdk, arguments.binding)
    yield from cases_of_front(arguments)


def probe_cases(arguments):
    def client():
        return RawClient(arguments.url, arguments.version, arguments.binding)

    for probe in probes.PROBES:
        yield f'probe: {spelled(probe)}', lambda probe=probe: probe(client())


def command_cases(arguments, sabir):
    for row in commands.ROWS:
        if arguments.version in row.versions:
            yield f'sabir: {row.name}', lambda row=row: sabir.check(row.steps)


def cases_of_front(arguments):
    remote = (arguments.sabir.resolve(), arguments.url, arguments.version, arguments.binding)
    with Front(*remote) as front:
        yield 'front: it finds the agent', front.find_agent
        for dialect in DIALECTS:
            for case in front_cases.CASES:
                name = f'front: {spelled(case)}, in {" ".join(dialect)}'
                yield name, lambda case=case, dialect=dialect: case(front, front.client(*dialect))
        yield from commands_to_front(arguments, front)
        yield 'front: it stops', front.stop
    with Front(*remote, crashes.SETTINGS) as front:
        yield 'front: it finds the agent of a file', front.find_agent
        for case in crashes.CASES:
            yield f'front: {spelled(case)}', lambda case=case: case(front)
        yield 'front: it stops after crashes', front.stop


def commands_to_front(arguments, front):
    def sabir():
        return front_commands.speaking(arguments.sabir.resolve(), front, (arguments.version, arguments.binding))

    spoken = front_commands.SPOKEN[arguments.version, arguments.binding]
    for row in front_commands.rows(spoken[0]):
        yield f'front: sabir: {row.name}, in {" ".join(spoken)}', lambda row=row: sabir().check(row.steps)
    name = 'front: check: a front keeps every rule in every version'
    yield name, lambda: conformance.a_front_keeps_every_rule_in_every_version(sabir())


def spelled(case):
    return case.__name__.replace('_', ' ')


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

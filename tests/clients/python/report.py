"""The tiny runner: one line per case, a time limit for each, one exit code for all.

A case is a coroutine function named for the behaviour it shows; it takes a peer and raises when the behaviour
is missing. Every case gets a peer of its own, so a broken connection spoils one case and not the rest. Cases about
credentials get the server that asks for them instead. A module with `ONLY_OVER` is for that binding alone.
"""

import argparse
import asyncio
import inspect
import sys

from not_over_grpc import REASONS

# A server that hangs must not hang us.
SECONDS_PER_CASE = 20


def main(peer, *modules, server, secured):
    """Runs all cases of the modules through `--binding`, against `--url` and for `secured` against the `server` that the
    file `--secured` tells of, and leaves with the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--url', required=True)
    parser.add_argument('--secured', required=True)
    parser.add_argument('--binding', required=True, choices=['jsonrpc', 'http_json', 'grpc'])
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()

    def open_server():
        return peer.connect(args.url, args.binding)

    def secured_server():
        return server.connect(peer, args.secured, args.binding)

    servers = [(open_server, module) for module in modules] + [(secured_server, module) for module in secured]
    cases = [
        (connect, case)
        for connect, module in servers
        for case in _cases(module)
        if args.only in _name(case) and _says_something(module, case, args.binding)
    ]
    if args.binding == 'grpc':
        _tell_what_is_left_out([module.__name__ for _, module in servers])
    sys.exit(asyncio.run(_run_all(f'{peer.sdk} {args.binding}', cases)))


async def _run_all(prefix, cases):
    passed = failed = 0
    for connect, case in cases:
        name = f'{prefix}: {_name(case)}'
        reason = await _run(connect, case)
        if reason is None:
            passed += 1
            print(f'ok - {name}', flush=True)
        else:
            failed += 1
            print(f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    return 1 if failed or not passed else 0


async def _run(connect, case):
    async def connected():
        async with connect() as other:
            await case(other)

    try:
        await asyncio.wait_for(connected(), SECONDS_PER_CASE)
    except asyncio.TimeoutError:
        return f'not over after {SECONDS_PER_CASE} s'
    except AssertionError as error:
        return _one_line(str(error))
    except Exception as error:  # whatever the SDK throws is the reason
        return _one_line(f'{type(error).__name__}: {error}')
    return None


def _cases(module):
    """The module's own coroutine functions, in the order of the file."""
    return [
        case
        for name, case in vars(module).items()
        if inspect.iscoroutinefunction(case) and case.__module__ == module.__name__ and not name.startswith('_')
    ]


def _tell_what_is_left_out(modules):
    for name, reason in REASONS.items():
        module, _, case = name.rpartition('.')
        if module in modules:
            # A list of what is gone would hide what comes under the same name.
            getattr(sys.modules[module], case)
            print(f'left out - {name}: {reason}')


def _says_something(module, case, binding):
    if binding == 'grpc':
        return f'{module.__name__}.{case.__name__}' not in REASONS
    return getattr(module, 'ONLY_OVER', binding) == binding


def _name(case):
    return case.__name__.replace('_', ' ')


def _one_line(text, limit=600):
    return ' '.join(text.split())[:limit]

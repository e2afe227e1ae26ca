"""The tiny runner: one line per case, a time limit for each, one exit code for all.

A case is a coroutine function named for the behaviour it shows; it takes a peer and raises when the behaviour
is missing. Every case gets a peer of its own, so a broken connection spoils one case and not the rest.
"""

import argparse
import asyncio
import inspect
import sys

# A server that hangs must not hang us.
SECONDS_PER_CASE = 20


def main(peer, *modules):
    """Runs all cases of the modules against `--url` through `--binding`, and leaves with the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--url', required=True)
    parser.add_argument('--binding', required=True, choices=['jsonrpc', 'http_json'])
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    cases = [case for module in modules for case in _cases(module) if args.only in _name(case)]
    sys.exit(asyncio.run(_run_all(peer, cases, args)))


async def _run_all(peer, cases, args):
    passed = failed = 0
    for case in cases:
        name = f'{peer.sdk} {args.binding}: {_name(case)}'
        reason = await _run(peer, case, args)
        if reason is None:
            passed += 1
            print(f'ok - {name}', flush=True)
        else:
            failed += 1
            print(f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    return 1 if failed or not passed else 0


async def _run(peer, case, args):
    async def connected():
        async with peer.connect(args.url, args.binding) as other:
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


def _name(case):
    return case.__name__.replace('_', ' ')


def _one_line(text, limit=600):
    return ' '.join(text.split())[:limit]

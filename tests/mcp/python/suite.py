"""The official Python SDK of MCP in front of a real server, in both eras of the protocol.

    suite.py --sabir FILE [--only WORD]

A case is a function of a module in `cases`, named for the behaviour that it shows. Those of `PLAIN` have no client of the SDK and
run once; the others run once for each era. Cases share a server, unless they ask for one of their own.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import asyncio
import inspect
import logging
import pathlib
import signal
import traceback

from cases import (
    access, artifacts, asking, coding_agent, interruptions, models, plain_http, questions, restarts, tasks_extension, tools
)
from stage import ERAS, STDIO, Server, Stage

EVERY_ERA = (tools, asking, questions, interruptions, artifacts, coding_agent, restarts, access)
# What depends on how messages are carried; the rest is the same.
OVER_STDIO = (tools, asking, questions, interruptions, restarts)
PLAIN = (plain_http, models)
MODERN = (tasks_extension,)
# For a case as a whole; what it waits for has a shorter limit.
LIMIT = 120


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The SDK logs each connection that a case cuts.
    logging.disable(logging.CRITICAL)
    passed = failed = 0
    server = Server(args.sabir.resolve())
    try:
        for name, era, case in cases():
            if args.only not in name:
                continue
            reason = run(Stage(args.sabir.resolve(), server, era), case)
            passed, failed = (passed, failed + 1) if reason else (passed + 1, failed)
            print(f'not ok - {name}: {reason}' if reason else f'ok - {name}', flush=True)
    finally:
        server.close()
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def cases():
    for era in ERAS:
        yield from (named for module in EVERY_ERA for named in of_module(module, era))
    for era in ERAS:
        yield from (named for module in OVER_STDIO for named in of_module(module, era + STDIO))
    yield from (named for module in MODERN for named in of_module(module, 'modern'))
    yield from (named for module in PLAIN for named in of_module(module, None))


def of_module(module, era):
    for name, case in list(vars(module).items()):
        if inspect.isfunction(case) and case.__module__ == module.__name__ and not name.startswith('_'):
            place = module.__name__.removeprefix('cases.')
            prefix = f'{place}, {era}' if era else place
            yield f'{prefix}: {name.replace("_", " ")}', era, case


def run(stage, case):
    """Why the case failed; None: it passed."""

    async def limited():
        async with asyncio.timeout(LIMIT):
            await case(stage)

    try:
        asyncio.run(limited())
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if '/cases/' in frame.filename] or place
        words = ' '.join(str(error).split())[:600] or type(error).__name__
        return f'{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno}: {words}'
    finally:
        stage.close()


if __name__ == '__main__':
    main()

"""The official client library of OpenAI in front of a real server.

    suite.py --sabir FILE [--only WORD]

A case is a function of a module in `cases`, named for the behaviour that it shows. Cases share a server, unless they ask for one of
their own.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import faulthandler
import inspect
import pathlib
import signal
import traceback

from cases import answers, chat_programs, interruptions, models, questions, refusals
from stage import Server, Stage

MODULES = (models, answers, questions, chat_programs, refusals, interruptions)
# For a case as a whole; what it waits for has a shorter limit.
LIMIT = 120


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, out_of_time)
    passed = failed = 0
    server = Server(args.sabir.resolve())
    try:
        for name, case in cases():
            if args.only not in name:
                continue
            reason = run(Stage(args.sabir.resolve(), server), case)
            passed, failed = (passed, failed + 1) if reason else (passed + 1, failed)
            print(f'not ok - {name}: {reason}' if reason else f'ok - {name}', flush=True)
    finally:
        server.close()
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def cases():
    for module in MODULES:
        for name, case in list(vars(module).items()):
            if inspect.isfunction(case) and case.__module__ == module.__name__ and not name.startswith('_'):
                yield f'{module.__name__.removeprefix("cases.")}: {name.replace("_", " ")}', case


def out_of_time(*_):
    faulthandler.dump_traceback()
    raise TimeoutError(f'the case takes longer than {LIMIT} s')


def run(stage, case):
    """Why the case failed; None: it passed."""
    signal.alarm(LIMIT)
    try:
        case(stage)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if '/cases/' in frame.filename] or place
        words = ' '.join(str(error).split())[:600] or type(error).__name__
        return f'{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno}: {words}'
    finally:
        signal.alarm(0)
        stage.close()


if __name__ == '__main__':
    main()

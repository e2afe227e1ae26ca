"""The tiny runner: one line per case, a time limit for each, one exit code for all.

A case is a function named for the behaviour it shows; it takes a stage and raises when the behaviour is missing.
`MODES` of its module says through which modes of the program it runs; `only` of a case may leave out some programs.
"""

import argparse
import inspect
import pathlib
import signal
import sys

from programs import PROGRAMS
from stage import Stage

# A program that hangs must not hang us.
# A session of Gemini can be resumed only after the minute in which it began.
SECONDS_PER_CASE = 110


class OutOfTime(Exception):
    pass


def main(*modules):
    """Runs all cases of the modules with one program, and leaves with the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--programs', required=True, type=pathlib.Path, help='a folder of Node modules per program')
    parser.add_argument('--program', required=True, choices=sorted(PROGRAMS))
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, _out_of_time)
    # Whoever stops us gets the same cleaning up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    program = PROGRAMS[args.program]
    passed = failed = 0
    for case, mode in _cases(modules, program):
        name = f'{program.name} {mode}: {case.__name__.replace("_", " ")}'
        if args.only not in name:
            continue
        reason = _run(case, Stage(args.sabir.resolve(), args.programs.resolve(), program, mode))
        if reason is None:
            passed += 1
            print(f'ok - {name}', flush=True)
        else:
            failed += 1
            print(f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def _run(case, stage):
    try:
        # The limit is for the case; cleaning up has limits of its own.
        with stage:
            signal.alarm(SECONDS_PER_CASE)
            try:
                case(stage)
            finally:
                signal.alarm(0)
    except AssertionError as error:
        return _one_line(f'{error}{stage.last_words()}')
    except Exception as error:  # whatever it is, it is the reason
        return _one_line(f'{type(error).__name__}: {error}{stage.last_words()}')
    return None


def _cases(modules, program):
    """Each case with each mode of the program that its module is for."""
    for mode in program.modes:
        for module in modules:
            if mode in module.MODES:
                for case in _of(module):
                    if getattr(case, 'only', lambda *_: True)(program, mode):
                        yield case, mode


def _of(module):
    """The module's own functions, in the order of the file."""
    return [
        case
        for name, case in vars(module).items()
        if inspect.isfunction(case) and case.__module__ == module.__name__ and not name.startswith('_')
    ]


def _out_of_time(*_):
    raise OutOfTime(f'not over after {SECONDS_PER_CASE} s')


def _one_line(text, limit=1500):
    return ' '.join(text.split())[:limit]

"""Time to the first piece of an answer: `first_token.py --sabir FILE --programs FOLDER [--rounds N]`.

For each program, the first and the second message of a conversation, with a program that stays for the next message
(`keep_warm`) and with one that is started for each. The model is the stand-in, which answers at once, so what is
measured is the program and Sabir. Prints a table for `docs/explanation/performance.md`.
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True

from programs import PROGRAMS
from stage import Stage


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--sabir', required=True, type=pathlib.Path)
    parser.add_argument('--programs', required=True, type=pathlib.Path)
    parser.add_argument('--rounds', default=5, type=int)
    args = parser.parse_args()
    print('| program | first message | second message, program stays | second message, program started again |')
    print('|---|---|---|---|')
    for program in PROGRAMS.values():
        if not (args.programs / program.name).exists():
            continue
        kept, started = (
            _measure(Stage(args.sabir.resolve(), args.programs.resolve(), program, program.modes[0], keep), args.rounds)
            for keep in ('5m', '0s')
        )
        first = _median(kept[0] + started[0])
        again = 'waits for the next minute' if program.name == 'gemini' else _median(started[1])
        print(f'| {program.name}, {program.modes[0]} | {first} | {_median(kept[1])} | {again} |', flush=True)


def _measure(stage, rounds):
    """Seconds of the first and of the second messages."""
    first, second = [], []
    with stage:
        stage.serve()
        for _ in range(rounds):
            seconds, context = _first_token(stage, 'scenario:text please')
            first.append(seconds)
            # Without its program, Gemini's session has to rest for a minute.
            if stage.program.name != 'gemini' or stage.keep_warm != '0s':
                second.append(_first_token(stage, 'scenario:text again', contextId=context)[0])
    return first, second


def _first_token(stage, text, **place):
    start = time.monotonic()
    seconds = context = None
    for frame in stage.client.stream('all', text, **place):
        context = context or frame.value.get('task', {}).get('contextId')
        if frame.wrote and seconds is None:
            seconds = time.monotonic() - start
    assert seconds is not None, 'no answer'
    return seconds, context


def _median(seconds):
    return f'{statistics.median(seconds):.2f} s'


main()

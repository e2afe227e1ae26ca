"""The console in a real browser, in front of a real server.

    suite.py --sabir FILE --browser FILE [--screenshots FOLDER] [--only WORD]

A case is a function of a module in `cases`, named for the behaviour that it shows. It gets a stage of its own, and fails if it raises, if
its page complains, or if anything is fetched from elsewhere.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import inspect
import pathlib
import shutil
import traceback

from playwright.sync_api import expect, sync_playwright

from cases import access, agents, appearance, deliveries, keyboard, markdown, pictures, planted, restarts, system, task, tasks, waiting
from stage import PATIENCE, Stage

# Pictures for README.md and docs/ are taken in a run of their own.
MODULES = (tasks, task, waiting, agents, deliveries, system, keyboard, appearance, access, markdown, planted, restarts)
# Sandboxing a browser needs rights that root in a container lacks; all that it opens here is our own.
BROWSER_ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--browser', required=True, help='the Chromium')
    parser.add_argument('--screenshots', type=pathlib.Path, help='take the pictures, into this folder')
    parser.add_argument('--only', default='', help='run the cases whose name holds this text')
    args = parser.parse_args()
    expect.set_options(timeout=PATIENCE * 1000)
    passed = failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which(args.browser), args=BROWSER_ARGUMENTS)
        for name, case in cases((pictures,) if args.screenshots else MODULES):
            if args.only not in name:
                continue
            reason = run(Stage(browser, args.sabir.resolve(), args.screenshots), case)
            passed, failed = (passed, failed + 1) if reason else (passed + 1, failed)
            print(f'not ok - {name}: {reason}' if reason else f'ok - {name}', flush=True)
        browser.close()
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def cases(modules):
    for module in modules:
        for name, case in list(vars(module).items()):
            if inspect.isfunction(case) and case.__module__ == module.__name__ and not name.startswith('_'):
                yield f'{module.__name__.removeprefix("cases.")}: {name.replace("_", " ")}', case


def run(stage, case):
    """Why the case failed; None: it passed."""
    try:
        case(stage)
        if stage.complaints:
            return '; '.join(stage.complaints)[:1000]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if '/cases/' in frame.filename] or place
        words = ' '.join(str(error).split())[:600] or type(error).__name__
        return f'{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno}: {words}'
    finally:
        stage.close()


main()

"""Runs every command of README.md and docs/ as a reader would type it, and compares the output that the page shows.

    suite.py --sabir FILE --clients FOLDER --programs FOLDER [PAGE...]

Each page is one case with a home folder, a port and a database of its own. Its blocks run from top to bottom:

- `sh` runs and must succeed. `console` runs the lines that begin with `$ `; what is shown below a command must be its
  output (`...` stands for anything, and white space does not count).
- A block that ends with `sabir serve` or `sabir proxy` keeps its terminal busy, so the blocks after it run in a second one.
- `file=NAME` behind a block's language saves the block as that file, as the page tells its reader to do. An `nginx` or
  `caddyfile` file starts that proxy on it, and systemd checks an `ini` file.
- `no-run="reason"` is not run. There may be only so many of those.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import pathlib
import signal
import time

import itself
import markdown
from page import Page
from stage import Stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_PER_PAGE = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sabir', required=True, type=pathlib.Path, help='the binary')
    parser.add_argument('--clients', required=True, type=pathlib.Path, help='the folder of the SDKs, target/clients')
    parser.add_argument('--programs', required=True, type=pathlib.Path, help='the folder of the coding programs')
    parser.add_argument('--without-cargo', action='store_true', help='leave out lines that begin with `cargo`')
    parser.add_argument('pages', nargs='*', help='only the pages whose path contains one of these words')
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    passed = failed = 0
    for name, case in _cases():
        if args.pages and not any(word in name for word in args.pages):
            continue
        started = time.monotonic()
        reason = _run(case, Stage(ROOT, args))
        if reason is None:
            passed += 1
            print(f'ok - {name} ({time.monotonic() - started:.1f} s)', flush=True)
        else:
            failed += 1
            print(f'not ok - {name}: {reason}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def _cases():
    """Each case by its name: a function of a stage."""
    yield 'the suite itself', itself.check
    for path in markdown.pages(ROOT):
        name = str(path.relative_to(ROOT))
        blocks = markdown.blocks(path.read_text())
        if any(block.is_run() for block in blocks):
            yield name, lambda stage: Page(stage, name, blocks).run()


def _run(case, stage):
    """What is wrong, if anything."""
    signal.alarm(SECONDS_PER_PAGE)
    try:
        with stage:
            case(stage)
    except Exception as error:  # whatever it is, it is the reason
        kind = '' if isinstance(error, AssertionError) else f'{type(error).__name__}: '
        return ' '.join(f'{kind}{error}'.split())[:2000]
    finally:
        signal.alarm(0)
    return None


def _out_of_time(*_):
    raise TimeoutError(f'not over after {SECONDS_PER_PAGE} s')


if __name__ == '__main__':
    main()

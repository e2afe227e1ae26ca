"""Builds, installs and runs what `cargo xtask dist` has made, as its users do.

    suite.py --dist FOLDER --cache FOLDER [CASE...]

Each case has a folder of its own, which is gone afterwards. A case that this machine cannot run says why and is not counted.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import os
import pathlib
import shutil
import signal
import tempfile
import time

import archive
import compose
import debian
import images
import kubernetes
import service
import workflow
from machine import Skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Without the download of a Debian.
SECONDS_PER_CASE = 600
CASES = {
    'archive: contents, checksums and parts': archive.contents,
    'archive: the binary serves, runs programs, resolves names and finds certificates': archive.serves,
    'Debian package: contents': debian.contents,
    'Debian package: the unit': debian.unit,
    'Debian package: install, start, upgrade, remove, purge': debian.life,
    'Debian package: the service under systemd': service.life,
    'small image: build, run, health, restart': images.small,
    'coding image: build, run programs': images.coding,
    'Compose files': compose.files,
    'Kubernetes': kubernetes.example,
    'release workflow': workflow.steps,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dist', required=True, type=pathlib.Path, help='what `cargo xtask dist` has made')
    parser.add_argument('--cache', required=True, type=pathlib.Path, help='where the files of a Debian are kept')
    parser.add_argument('cases', nargs='*', help='only the cases whose name contains one of these words')
    args = parser.parse_args()
    args.root = ROOT
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    passed = failed = 0
    for name, case in CASES.items():
        if args.cases and not any(word in name for word in args.cases):
            continue
        started = time.monotonic()
        try:
            _run(case, args)
        except Skipped as reason:
            print(f'skipped - {name}: {reason}', flush=True)
        except Exception as error:  # whatever it is, it is the reason
            failed += 1
            kind = '' if isinstance(error, AssertionError) else f'{type(error).__name__}: '
            print(f'not ok - {name}: {" ".join(f"{kind}{error}".split())[:2000]}', flush=True)
        else:
            passed += 1
            print(f'ok - {name} ({time.monotonic() - started:.1f} s)', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    # A suite in which nothing ran has shown nothing.
    sys.exit(1 if failed or not passed else 0)


def _run(case, args):
    # podman takes short paths only. What tools leave in their temporary folder goes with ours.
    folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-packages-', dir='/tmp')).resolve()
    os.environ['TMPDIR'] = str(folder)
    folder.chmod(0o755)
    signal.alarm(SECONDS_PER_CASE)
    try:
        case(args, folder)
    finally:
        signal.alarm(0)
        shutil.rmtree(folder, ignore_errors=True)


def _out_of_time(*_):
    raise TimeoutError('not over in time')


if __name__ == '__main__':
    main()

"""What the cases do with this machine: run programs, start servers, wait, and say what it cannot do."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import time

TOKEN = 'secret-of-alice'
# Two hundred packages, over whatever network there is.
SECONDS_FOR_DEBIAN = 1200


class Skipped(Exception):
    """Why a case cannot run on this machine."""


def run(*words, code=0, **options):
    """The output of a command, both streams; it must exit with this code."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    text = done.stdout.decode(errors='replace')
    assert code is None or done.returncode == code, f'`{" ".join(words)}` exited with {done.returncode}: {text[-1500:]}'
    return text


def need_program(name, package):
    if shutil.which(name, path=f'{os.environ["PATH"]}:/usr/sbin:/sbin') is None:
        raise Skipped(f'{name} is not installed (Debian has it in {package})')


@functools.cache
def _can_isolate():
    probe = ['unshare', '--mount', '--pid', '--fork', 'chroot', '/', 'true']
    return os.geteuid() == 0 and subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def need_isolation():
    """Root file systems are entered with chroot, in namespaces of their own."""
    need_program('unshare', 'util-linux')
    if not _can_isolate():
        raise Skipped('unshare and chroot need root, and a machine that allows namespaces')


YAML_AS_JSON = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1]))), default=str))'


def read_yaml(file):
    """The documents of a file, by a Python that can read YAML."""
    for python in ('python3', '/usr/bin/python3'):
        if subprocess.run([python, '-c', 'import yaml'], capture_output=True).returncode == 0:
            return json.loads(run(python, '-c', YAML_AS_JSON, file))
    raise Skipped('no Python here has the module yaml (Debian has it in python3-yaml)')


def wait_for(what, condition, seconds=120):
    """The first true value of the condition."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f'{what}: not within {seconds} s')


class Server:
    """A `sabir serve`, started by these words; it prints one line when it is ready."""

    def __init__(self, words, **options):
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # The line of unshare is ended with all that it started.
            start_new_session=True,
            **options,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f'the server did not start: {self.end()}')
        self.ready = json.loads(line)
        self.url = self.ready['url']

    def stop(self, sabir=None):
        """SIGTERM to `sabir`, or to what was started; how it exits."""
        os.kill(sabir or self.process.pid, signal.SIGTERM)
        return self.process.wait(120)

    def end(self):
        """Whatever it does, it ends now; the end of its log."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return self.process.communicate()[1].decode(errors='replace')[-1500:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Root:
    """A root file system that programs are run in: mounts, processes and names are its own, the network is the machine's."""

    def __init__(self, folder):
        need_isolation()
        self.folder = folder

    def words(self, *words, user='root'):
        script = 'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$@"'
        (self.folder / 'proc').mkdir(exist_ok=True)
        (self.folder / 'dev').mkdir(exist_ok=True)
        (self.folder / 'dev/null').touch()
        isolated = ['unshare', '--mount', '--pid', '--uts', '--ipc', '--fork', '--kill-child', 'sh', '-c', script]
        return [*isolated, str(self.folder), f'--userspec={user}', str(self.folder), *map(str, words)]

    def run(self, *words, user='root', code=0, env=None):
        """The output of a command in it."""
        return run(*self.words(*words, user=user), code=code, env={'PATH': PATH, 'HOME': '/root', **(env or {})})


PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'


def first_child(pid):
    """The process that `unshare --fork` has started."""
    children = open(f'/proc/{pid}/task/{pid}/children').read().split()
    return int(children[0])


def debian(cache, release='bookworm', packages=()):
    """An archive with the files of a small Debian with Node, systemd and more, made once."""
    need_program('mmdebstrap', 'mmdebstrap')
    need_isolation()
    file = cache / f'debian-{release}-{os.uname().machine}.tar'
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix('.new.tar')
        include = ','.join(('adduser', 'ca-certificates', 'nodejs', 'systemd', 'systemd-sysv', *packages))
        with _time_of_its_own(SECONDS_FOR_DEBIAN):
            run('mmdebstrap', '--quiet', '--variant=minbase', f'--include={include}', release, new)
        new.rename(file)
    return file


@contextlib.contextmanager
def _time_of_its_own(seconds):
    """What is done here does not use up the time of the case that needs it first."""
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(left)


def unpack_debian(cache, folder):
    """Its files in this folder, without devices."""
    folder.mkdir()
    run('tar', '--extract', '--file', debian(cache), '--directory', folder, '--exclude=./dev/*', '--numeric-owner')
    return Root(folder)

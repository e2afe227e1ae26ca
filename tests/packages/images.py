"""The container images, built and run with podman. Its storage is in the folder of the case."""

import contextlib
import json
import os
import pathlib
import platform
import shutil
import subprocess

import machine
from machine import TOKEN, Skipped, need_program, run, wait_for

# Two are tried: crun does not work where cgroups of both versions are mounted, runc is not everywhere.
RUNTIMES = ('crun', 'runc')
ARCHITECTURE = {'x86_64': 'amd64', 'aarch64': 'arm64'}[platform.machine()]
CREDENTIALS = ('--env', f'SABIR_AUTH_TOKENS=alice:{TOKEN}')


class Podman:
    def __init__(self, folder):
        need_program('podman', 'podman')
        machine.need_isolation()
        self.folder = folder
        self.runtime = []

    def __call__(self, *words, **options):
        """The output of podman."""
        return run(*self.words(*words), cwd=self.folder, **options)

    def told(self, *words):
        """What a command prints that only looks. On a busy machine podman loses the output of a short one now and then."""
        return wait_for(f'an output of {words[-3:]}', lambda: self(*words))

    def words(self, *words):
        places = ['--root', self.folder / 'storage', '--runroot', self.folder / 'run', '--tmpdir', self.folder / 'tmp']
        return ['podman', *places, '--cgroup-manager=cgroupfs', '--events-backend=none', *self.runtime, *words]

    def build(self, args, image, *words):
        """An image from the context of the release: the sources of the images, and the files of the binary."""
        context = self.folder / 'context'
        if not context.exists():
            shutil.copytree(args.root / 'packaging', context / 'packaging')
            shutil.copytree(args.dist / 'image', context / 'target/dist/image')
        self('build', '--isolation=chroot', '--format=docker', '--pull=never', '--tag', image, *words, context)

    def build_small(self, args):
        file = 'context/packaging/container/Dockerfile'
        self.build(args, 'sabir', '--file', file, '--build-arg', 'SABIR=ready', '--build-arg', f'TARGETARCH={ARCHITECTURE}')

    def choose_runtime(self, image, command='--version'):
        """A runtime that starts a container on this machine."""
        complaints = []
        for runtime in RUNTIMES:
            if shutil.which(runtime) is None:
                continue
            self.runtime = ['--runtime', runtime]
            try:
                self('run', '--rm', *LIMITS, image, command)
                return
            except AssertionError as error:
                complaints.append(f'{runtime}: {str(error)[-200:]}')
        raise Skipped(f'no runtime of {", ".join(RUNTIMES)} can start a container here: {complaints}')

    @contextlib.contextmanager
    def serving(self, name, image, *options, command=()):
        """A container that is healthy."""
        try:
            self('run', '--detach', '--name', name, *LIMITS, *options, image, *command)
            try:
                wait_for('healthy', lambda: _exits_well(self.words('healthcheck', 'run', name)))
            except AssertionError as error:
                raise AssertionError(f'{error}: {self("logs", name, code=None)}')
            yield
        finally:
            self('rm', '--force', '--time', '1', name, code=None)

    def inspect(self, image):
        return json.loads(self.told('inspect', '--type', 'image', image))[0]


# A network of its own, with nothing but loopback. The limits are podman's defaults elsewhere; raising them needs rights that
# a test machine may not have.
LIMITS = ('--network=none', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024')
HARD = ('--read-only', '--cap-drop=all', '--security-opt=no-new-privileges')


def small(args, folder):
    with podman_in(folder) as podman:
        podman.build_small(args)
        image = podman.inspect('localhost/sabir')
        config = image['Config']
        assert config['User'] == '1000:1000', config
        assert '/var/lib/sabir' in config['Volumes'] and '41242/tcp' in config['ExposedPorts'], config
        check = config.get('Healthcheck') or image['Healthcheck']
        assert check['Test'] == ['CMD', '/usr/bin/sabir', 'health'], check
        files = [path for path in (folder / f'context/target/dist/image/{ARCHITECTURE}').rglob('*') if path.is_file()]
        most = 1.1 * sum(path.stat().st_size for path in files)
        assert image['Size'] < most, f'{image["Size"]} bytes, of {most} at most'
        podman.choose_runtime('localhost/sabir')

        refused = podman('run', '--rm', *LIMITS, *HARD, 'localhost/sabir', code=2)
        assert 'allow_open' in refused or 'allow-open' in refused, refused
        volume = ('--volume', 'tasks:/var/lib/sabir')
        with podman.serving('first', 'localhost/sabir', *HARD, *CREDENTIALS, *volume):
            send = podman('exec', '--env', f'SABIR_TOKEN={TOKEN}', 'first', 'sabir', 'send', '--format', 'text', 'hello')
            assert 'echo: hello' in send, send
            health = podman.told('exec', 'first', 'sabir', 'health')
            assert health == '{"status":"ready"}\n', health
            # A call without the token.
            refused = podman('exec', 'first', 'sabir', 'send', 'hello', code=None)
            assert 'echo' not in refused and 'token' in refused.lower(), refused
            process = podman.told('inspect', '--format', '{{.State.Pid}}', 'first').strip()
            status = pathlib.Path(f'/proc/{process}/status').read_text()
            for line in ('Uid:\t1000\t1000', 'CapEff:\t0000000000000000', 'NoNewPrivs:\t1'):
                assert line in status, status
            podman('stop', '--time', '20', 'first')
            assert podman.told('inspect', '--format', '{{.State.ExitCode}}', 'first').strip() == '0'
        with podman.serving('second', 'localhost/sabir', *HARD, *CREDENTIALS, *volume):
            listed = podman.told('exec', '--env', f'SABIR_TOKEN={TOKEN}', 'second', 'sabir', 'list', '--format', 'json')
            assert json.loads(listed.splitlines()[-1])['id'], listed
            podman('exec', 'second', 'sabir', 'health', 'http://127.0.0.1:1', code=1)


def coding(args, folder):
    with podman_in(folder) as podman:
        podman.build_small(args)
        podman.choose_runtime('localhost/sabir')
        # In the place of node:22-bookworm-slim, which has a user `node` and may be out of reach.
        podman('import', machine.debian(args.cache), 'localhost/debian')
        (folder / 'Dockerfile.base').write_text('FROM localhost/debian\nRUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home --shell /bin/bash node\n')
        podman('build', '--isolation=chroot', '--tag', 'docker.io/library/node:22-bookworm-slim', '--file', folder / 'Dockerfile.base', folder)
        programs = ('--build-arg', 'PROGRAMS=', '--build-arg', 'SABIR_IMAGE=localhost/sabir')
        podman.build(args, 'sabir-coding', '--file', 'context/packaging/container/Dockerfile.coding', *programs)
        assert podman.inspect('localhost/sabir-coding')['Config']['User'] == '1000:1000'

        workspace = folder / 'workspace'
        workspace.mkdir()
        os.chown(workspace, 1000, 1000)
        configuration = folder / 'sabir.toml'
        configuration.write_text((args.root / 'packaging/container/sabir.toml').read_text() + AGENTS)
        configuration.chmod(0o644)
        mounts = ('--volume', f'{workspace}:/workspace', '--volume', f'{configuration}:/etc/sabir/sabir.toml:ro')
        with podman.serving('coding', 'localhost/sabir-coding', *HARD, '--tmpfs=/tmp', *CREDENTIALS, *mounts):
            for agent, expected in [('node', 'node says 42'), ('git', 'Initialized empty Git repository'), ('shell', 'sabir /var/lib/sabir')]:
                sent = podman('exec', '--env', f'SABIR_TOKEN={TOKEN}', 'coding', 'sabir', 'send', '--format', 'text', '--agent', agent, 'go')
                assert expected in sent, f'{agent}: {sent}'
        assert (workspace / 'made/.git').is_dir() and (workspace / 'made').stat().st_uid == 1000


AGENTS = """
[[agent]]
id = "node"
kind = "command"
command = ["node", "-e", "console.log('node says ' + 6 * 7)"]
workspace = "/workspace"

[[agent]]
id = "git"
kind = "command"
command = ["git", "init", "made"]
workspace = "/workspace"

[[agent]]
id = "shell"
kind = "command"
command = ["bash", "-c", "echo $(id --user --name) $HOME"]
workspace = "/workspace"
"""


@contextlib.contextmanager
def podman_in(folder):
    podman = Podman(folder)
    try:
        yield podman
    finally:
        podman('rm', '--all', '--force', '--time', '1', code=None)
        podman('unmount', '--all', code=None)
        podman('system', 'reset', '--force', code=None)


def _exits_well(words):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0

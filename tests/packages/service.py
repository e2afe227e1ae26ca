"""The service under a real systemd, which is the first process of a container."""

import re

import debian
import machine
from images import podman_in
from machine import Skipped, run, wait_for

# What systemd itself needs. The network is the container's own, with nothing but loopback.
BOOT = ('--systemd=always', '--privileged', '--network=none', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096')
CONFIG = ('--config', '/etc/sabir/sabir.toml')


def life(args, folder):
    share = folder / 'share'
    share.mkdir()
    run('cp', debian.package(args), share / 'first.deb')
    debian.make_next_version(args, folder, share / 'second.deb')
    with podman_in(folder) as podman:
        podman('import', machine.debian(args.cache), 'localhost/debian')
        podman.choose_runtime('localhost/debian', command='/bin/true')
        podman('run', '--detach', '--name', 'machine', *BOOT, '--volume', f'{share}:/share:ro', 'localhost/debian', '/sbin/init')

        def inside(*words, code=0):
            return podman('exec', 'machine', *words, code=code)

        def is_ready():
            return 'ready' in inside('sabir', 'health', *CONFIG, code=None)

        def main_process():
            return int(inside('systemctl', 'show', '--property=MainPID', '--value', 'sabir'))

        try:
            wait_for('systemd', lambda: re.match('running|degraded', inside('systemctl', 'is-system-running', code=None)), 60)
        except AssertionError:
            raise Skipped(f'systemd does not start in a container here: {podman("logs", "machine", code=None)[-300:]}')

        inside('dpkg', '--install', '/share/first.deb')
        wait_for('the service is ready', is_ready)
        assert inside('systemctl', 'is-enabled', 'sabir').strip() == 'enabled'
        assert 'echo: hello' in inside('sabir', 'send', '--format', 'text', 'http://127.0.0.1:41242', 'hello')

        # Programs run under all that the unit forbids, and cannot do it.
        inside('sh', '-c', f'cat >> /etc/sabir/sabir.toml << "END"\n{AGENT}\nEND')
        inside('systemctl', 'restart', 'sabir')
        wait_for('the service is ready again', is_ready)
        answer = inside('sabir', 'send', '--format', 'text', '--agent', 'probe', 'http://127.0.0.1:41242', 'go')
        for line in EXPECTED:
            assert line in answer, f'{line!r} is not in {answer}'

        before = main_process()
        inside('systemctl', 'reload', 'sabir')
        wait_for('the reload', lambda: 'SIGHUP: ' in log(inside))
        assert is_ready() and main_process() == before, log(inside)
        inside('kill', '-KILL', str(before))
        wait_for('the service is back after a kill', lambda: main_process() not in (0, before) and is_ready())

        # An upgrade restarts it, with its tasks.
        before = main_process()
        inside('dpkg', '--force-confold', '--install', '/share/second.deb')
        wait_for('the service is ready after the upgrade', lambda: main_process() not in (0, before) and is_ready())
        assert inside('sabir', 'list', '--format', 'json', 'http://127.0.0.1:41242').count('\n') == 2
        inside('systemctl', 'stop', 'sabir')
        assert inside('systemctl', 'show', '--property=Result', '--value', 'sabir').strip() == 'success', log(inside)
        inside('systemctl', 'start', 'sabir')
        inside('dpkg', '--purge', 'sabir')
        assert 'could not be found' in inside('systemctl', 'status', 'sabir', code=4)


def log(inside):
    return inside('journalctl', '--unit', 'sabir', '--no-pager', '--lines', '20', code=None)


AGENT = """
[[agent]]
id = "probe"
kind = "command"
workspace = "/var/lib/sabir"
command = ["sh", "-c", '''
grep -E "^(NoNewPrivs|CapBnd|Seccomp):" /proc/self/status
touch /etc/written 2> /dev/null || echo etc is read-only
touch /var/lib/sabir/written && echo home is writable
touch /tmp/written && echo tmp is writable
ls /home > /dev/null 2>&1 || echo home folders are hidden
node -e "let n = 0; for (let i = 0; i < 3e6; i++) n += i % 7; console.log('node compiled ' + (n > 0))"
unshare --user --mount --map-root-user true && echo sandboxes can be made
date --set=2000-01-01 > /dev/null 2>&1 || echo the clock is safe
''']
"""
EXPECTED = [
    'NoNewPrivs:\t1',
    'CapBnd:\t0000000000000000',
    'Seccomp:\t2',
    'etc is read-only',
    'home is writable',
    'tmp is writable',
    'home folders are hidden',
    'node compiled true',
    'sandboxes can be made',
    'the clock is safe',
]

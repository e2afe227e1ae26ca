"""The service under a real systemd, which is the first process of a container."""

import re

import debian
import machine
from images import podman_in
from machine import Skipped, run, wait_for

# What systemd itself needs. The network is the container's own, with nothing but loopback.
BOOT = ('--systemd=always', '--privileged', '--network=none', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096')
# systemd 252 leaves the whole /proc of the machine below that of the service, and the kernel grants sandboxes what it
# refuses them under a newer one; so this is the newer one. The word lets it start on a machine with the first cgroups.
DEBIAN = ('trixie', ('bubblewrap',))
INIT = ('/sbin/init', 'SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1')
# What systemd says when the machine does not let it start.
GAVE_UP = ('Freezing execution', 'Exiting PID 1')
CONFIG = ('--config', '/etc/sabir/sabir.toml')


def life(args, folder):
    share = folder / 'share'
    share.mkdir()
    run('cp', debian.package(args), share / 'first.deb')
    debian.make_next_version(args, folder, share / 'second.deb')
    volumes = ['--volume', f'{share}:/share:ro']
    claude = claude_code(args)
    if claude:
        volumes += ['--volume', f'{claude}:/opt/claude:ro']
    with podman_in(folder) as podman:
        podman('import', machine.debian(args.cache, *DEBIAN), 'localhost/debian')
        podman.choose_runtime('localhost/debian', command='/bin/true')
        podman('run', '--detach', '--name', 'machine', *BOOT, *volumes, 'localhost/debian', *INIT)

        def inside(*words, code=0):
            return podman('exec', 'machine', *words, code=code)

        def is_ready():
            return 'ready' in inside('sabir', 'health', *CONFIG, code=None)

        def main_process():
            return int(inside('systemctl', 'show', '--property=MainPID', '--value', 'sabir'))

        def has_booted():
            if re.match('running|degraded', inside('systemctl', 'is-system-running', code=None)):
                return True
            console = podman('logs', 'machine', code=None)
            if any(words in console for words in GAVE_UP):
                raise Skipped(f'systemd does not start in a container here: {console[-300:]}')
            return False

        try:
            wait_for('systemd', has_booted, 180)
        except AssertionError as error:
            state = inside('systemctl', 'is-system-running', code=None)
            raise AssertionError(f'{error}: {state} {podman("logs", "machine", code=None)[-1000:]}')

        inside('dpkg', '--install', '/share/first.deb')
        wait_for('the service is ready', is_ready)
        assert inside('systemctl', 'is-enabled', 'sabir').strip() == 'enabled'
        assert 'echo: hello' in inside('sabir', 'send', '--format', 'text', 'http://127.0.0.1:41242', 'hello')

        # Programs run under all that the unit forbids, and cannot do it.
        inside('sh', '-c', f'cat >> /etc/sabir/sabir.toml << "END"\n{AGENT}{CLAUDE if claude else ""}\nEND')
        inside('systemctl', 'restart', 'sabir')
        wait_for('the service is ready again', is_ready)
        answer = inside('sabir', 'send', '--format', 'text', '--agent', 'probe', 'http://127.0.0.1:41242', 'go')
        for line in EXPECTED:
            assert line in answer, f'{line!r} is not in {answer}'
        tasks = 2
        if claude:
            # The real program starts, and says that nobody has logged it in.
            answer = inside('sabir', 'send', '--format', 'text', '--agent', 'claude', 'http://127.0.0.1:41242', 'go', code=None)
            assert 'logged in' in answer.lower(), f'{answer}: {log(inside)}'
            tasks = 3
        else:
            print('    without Claude Code, which `cargo xtask test agents-claude-code` installs', flush=True)

        before = main_process()
        inside('systemctl', 'reload', 'sabir')
        wait_for('the reload', lambda: 'SIGHUP: ' in log(inside))
        assert is_ready() and main_process() == before, log(inside)
        inside('sh', '-c', f'kill -KILL {before}')
        wait_for('the service is back after a kill', lambda: main_process() not in (0, before) and is_ready())

        # An upgrade restarts it, with its tasks.
        before = main_process()
        inside('dpkg', '--force-confold', '--install', '/share/second.deb')
        wait_for('the service is ready after the upgrade', lambda: main_process() not in (0, before) and is_ready())
        assert inside('sabir', 'list', '--format', 'json', 'http://127.0.0.1:41242').count('\n') == tasks
        inside('systemctl', 'stop', 'sabir')
        assert inside('systemctl', 'show', '--property=Result', '--value', 'sabir').strip() == 'success', log(inside)
        inside('systemctl', 'start', 'sabir')
        inside('dpkg', '--purge', 'sabir')
        assert 'could not be found' in inside('systemctl', 'status', 'sabir', code=4)


def claude_code(args):
    """The modules of Claude Code, if its own suite has installed it beside the cache of this one."""
    modules = args.cache.resolve().parent / 'agents/claude-code/node_modules'
    return modules if (modules / '.bin/claude').exists() else None


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
unshare --user --map-root-user --pid --fork --mount-proc true && echo sandboxes have a proc of their own
bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --hostname box --die-with-parent echo bubblewrap works
# What the missing settings of the unit would forbid.
dmesg > /dev/null 2>&1 || echo the kernel log is hidden
echo 1 2> /dev/null > /proc/sys/kernel/printk || echo the kernel settings are safe
hostname evil 2> /dev/null || echo the host name is safe
ls -d /proc/1 > /dev/null 2>&1 || echo processes of others are hidden
date --set=2000-01-01 > /dev/null 2>&1 || echo the clock is safe
''']
"""
CLAUDE = """
[[agent]]
id = "claude"
kind = "claude-code"
workspace = "/var/lib/sabir"
command = ["/opt/claude/.bin/claude"]
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
    'sandboxes have a proc of their own',
    'bubblewrap works',
    'the kernel log is hidden',
    'the kernel settings are safe',
    'the host name is safe',
    'processes of others are hidden',
    'the clock is safe',
]

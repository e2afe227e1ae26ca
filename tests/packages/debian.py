"""The Debian package: what is in it, its unit, and its life in a small Debian."""

import json
import os
import re
import shlex

import machine
from machine import Server, need_program, run

# The exposure that `systemd-analyze security` sees, times ten. What coding programs need (namespaces, ptrace, a network) costs the rest.
MOST_EXPOSED = 45

FILES = {
    './usr/bin/sabir': '-rwxr-xr-x',
    './lib/systemd/system/sabir.service': '-rw-r--r--',
    './etc/sabir/sabir.toml': '-rw-r-----',
    './usr/share/bash-completion/completions/sabir': '-rw-r--r--',
    './usr/share/zsh/vendor-completions/_sabir': '-rw-r--r--',
    './usr/share/fish/vendor_completions.d/sabir.fish': '-rw-r--r--',
    './usr/share/man/man1/sabir.1.gz': '-rw-r--r--',
    './usr/share/man/man1/sabir-serve.1.gz': '-rw-r--r--',
    './usr/share/doc/sabir/copyright': '-rw-r--r--',
    './usr/share/doc/sabir/sabir.cdx.json': '-rw-r--r--',
    './usr/share/doc/sabir/THIRD-PARTY-LICENSES.gz': '-rw-r--r--',
    './usr/share/doc/sabir/examples/sabir.example.toml': '-rw-r--r--',
}


def contents(args, folder):
    deb = package(args)
    modes = {}
    for line in run('dpkg-deb', '--contents', deb).splitlines():
        mode, owner, _, _, _, name = line.split(maxsplit=5)
        assert owner == 'root/root', line
        modes[name] = mode
    for name, mode in FILES.items():
        assert modes.get(name) == mode, f'{name}: {modes.get(name)}, expected {mode}'
    fields = run('dpkg-deb', '--field', deb)
    assert re.search(r'^Version: \d+\.\d+\.\d+$', fields, re.M), fields
    assert re.search(r'^Architecture: (amd64|arm64)$', fields, re.M), fields
    run('dpkg-deb', '--control', deb, folder / 'control')
    assert (folder / 'control/conffiles').read_text() == '/etc/sabir/sabir.toml\n'
    need_program('lintian', 'lintian')
    complaints = run('lintian', '--fail-on', 'error', '--suppress-tags', SUPPRESSED, deb, code=None).splitlines()
    assert not [line for line in complaints if line.startswith(('E:', 'W:'))], complaints


# Rules for Debian's own archive, and the copy of a library that Rust builds in.
SUPPRESSED = 'embedded-library,no-changelog,debian-changelog-file-missing'


def unit(args, folder):
    need_program('systemd-analyze', 'systemd')
    run('dpkg-deb', '--extract', package(args), folder / 'root')
    unit = folder / 'root/lib/systemd/system/sabir.service'
    # The machine of the test has no such program and user, the unit's own words count.
    (folder / 'units').mkdir()
    checked = folder / 'units/sabir.service'
    binary = folder / 'root/usr/bin/sabir'
    checked.write_text(unit.read_text().replace('/usr/bin/sabir', str(binary)))
    printed = run('systemd-analyze', 'verify', '--man=no', checked, code=None)
    faults = [line for line in printed.splitlines() if 'sabir.service' in line]
    assert not faults, faults
    limit = f'--threshold={MOST_EXPOSED}'
    printed = run('systemd-analyze', 'security', '--offline=true', '--no-pager', limit, checked, code=None)
    level = re.search(r'Overall exposure level for sabir.service: ([\d.]+)', printed)
    assert level and float(level[1]) * 10 <= MOST_EXPOSED, printed[-1500:]
    assert 'MemoryDenyWriteExecute=true' not in unit.read_text(), 'the compilers of Node and Bun need such memory'
    for setting in ('ProtectKernelTunables', 'ProtectKernelLogs', 'ProtectHostname', 'RestrictSUIDSGID'):
        assert f'\n{setting}=' not in unit.read_text(), f'sandboxes cannot be made under {setting}'
    # Its words are those of the program.
    words = shlex.split(re.search('^ExecStart=(.*)$', unit.read_text(), re.M)[1])
    assert words[:2] == ['/usr/bin/sabir', 'serve'], words
    run(binary, 'config', '--config', folder / 'root/etc/sabir/sabir.toml', cwd=folder)


def life(args, folder):
    root = machine.unpack_debian(args.cache, folder / 'root')
    run('cp', package(args), root.folder / 'first.deb')
    make_next_version(args, folder, root.folder / 'second.deb')

    root.run('dpkg', '--install', '/first.deb')
    assert 'sabir:x:' in (root.folder / 'etc/passwd').read_text()
    assert _owner(root, '/var/lib/sabir') == 'sabir:sabir 750'
    assert _owner(root, '/etc/sabir/sabir.toml') == 'root:sabir 640'
    enabled = root.folder / 'etc/systemd/system/multi-user.target.wants/sabir.service'
    assert enabled.is_symlink(), 'the service is not enabled'
    task = _use(root)

    # What the administrator wrote stays, and so do the tasks.
    configuration = root.folder / 'etc/sabir/sabir.toml'
    written = configuration.read_text() + '\n# of the administrator\n'
    configuration.write_text(written)
    root.run('dpkg', '--force-confold', '--install', '/second.deb')
    assert configuration.read_text() == written
    assert _owner(root, '/etc/sabir/sabir.toml') == 'root:sabir 640'
    assert '# new in this version' in (root.folder / 'etc/sabir/sabir.toml.dpkg-dist').read_text()
    assert task != _use(root, earlier=task)

    root.run('dpkg', '--remove', 'sabir')
    assert not (root.folder / 'usr/bin/sabir').exists()
    assert configuration.exists() and (root.folder / 'var/lib/sabir/sabir.db').exists()
    root.run('dpkg', '--install', '/second.deb')
    _use(root, earlier=task)
    (root.folder / 'etc/sabir/environment').write_text('SABIR_AUTH_TOKENS=alice:secret\n')
    root.run('dpkg', '--purge', 'sabir')
    for gone in ('etc/sabir', 'var/lib/sabir', 'usr/share/doc/sabir', 'etc/systemd/system/multi-user.target.wants/sabir.service'):
        assert not os.path.lexists(root.folder / gone), f'{gone} is still there'
    assert 'sabir' not in root.run('dpkg', '--get-selections')


def _use(root, earlier=None):
    """Starts the binary as the unit does, sends a message, and finds an earlier task; the id of the new one."""
    unit = (root.folder / 'lib/systemd/system/sabir.service').read_text()
    words = shlex.split(re.search('^ExecStart=(.*)$', unit, re.M)[1])
    env = {'HOME': '/var/lib/sabir', 'PATH': machine.PATH, 'SABIR_LISTEN': '127.0.0.1:0'}
    with Server(root.words(*words, user='sabir:sabir'), env=env) as server:
        assert root.run('sabir', 'health', '--config', '/etc/sabir/sabir.toml') == '{"status":"ready"}\n'
        sent = root.run('sabir', 'send', '--config', '/etc/sabir/sabir.toml', '--format', 'text', 'hello', user='sabir:sabir')
        assert 'echo: hello' in sent, sent
        if earlier:
            assert 'echo: hello' in root.run('sabir', 'get', '--format', 'text', server.url, earlier)
        listed = json.loads(root.run('sabir', 'list', '--format', 'json', server.url).splitlines()[0])
        assert server.stop(machine.first_child(server.process.pid)) == 0, server.end()
    assert _owner(root, '/var/lib/sabir/sabir.db').startswith('sabir:sabir ')
    return listed['id']


def make_next_version(args, folder, deb):
    """The same package with a higher version, and a configuration that says more."""
    tree = folder / 'next'
    run('dpkg-deb', '--raw-extract', package(args), tree)
    control = tree / 'DEBIAN/control'
    control.write_text(re.sub('^Version: .*$', 'Version: 999.0.0', control.read_text(), flags=re.M))
    configuration = tree / 'etc/sabir/sabir.toml'
    configuration.write_text(configuration.read_text() + '\n# new in this version\n')
    run('dpkg-deb', '--root-owner-group', '-Zgzip', '-z1', '--build', tree, deb)


def _owner(root, path):
    return root.run('stat', '--format=%U:%G %a', path).strip()


def package(args):
    found = list(args.dist.glob('sabir_*.deb'))
    assert len(found) == 1, found
    return found[0]

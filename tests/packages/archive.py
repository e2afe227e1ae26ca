"""The archive with the static binary."""

import json
import pathlib
import re

import machine
from machine import Server, run

EXPECTED = [
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'THIRD-PARTY-LICENSES',
    'completions/_sabir',
    'completions/sabir.bash',
    'completions/sabir.fish',
    'man/sabir-serve.1',
    'man/sabir.1',
    'sabir',
    'sabir.cdx.json',
    'sabir.example.toml',
    'sabir.schema.json',
    'systemd/sabir.service',
]


def contents(args, folder):
    names = sorted(path.name for path in args.dist.iterdir() if path.is_file())
    listed = sorted(line.split()[1] for line in (args.dist / 'SHA256SUMS').read_text().splitlines())
    assert listed == [name for name in names if name != 'SHA256SUMS'], listed
    run('sha256sum', '--check', '--strict', 'SHA256SUMS', cwd=args.dist)

    archive = _archive(args)
    listing = run('tar', '--list', '--verbose', '--numeric-owner', '--full-time', '--file', archive).splitlines()
    owners = {line.split()[1] for line in listing}
    times = {' '.join(line.split()[3:5]) for line in listing}
    order = [line.split()[5] for line in listing]
    assert owners == {'0/0'}, owners
    assert len(times) == 1, times
    assert order == sorted(order), 'not sorted'
    unpacked = unpack(args, folder)
    for name in EXPECTED:
        assert (unpacked / name).is_file(), f'{name} is missing'
    # One page of the manual for each command that the binary has.
    listed = run(unpacked / 'sabir', '--help').split('Commands:')[1].split('Options:')[0]
    commands = re.findall(r'^  ([a-z-]+)  ', listed, re.M)
    assert 'health' in commands and 'serve' in commands, commands
    for command in set(commands) - {'help'}:
        assert (unpacked / f'man/sabir-{command}.1').is_file(), f'no page of {command}'

    binary = (unpacked / 'sabir').read_bytes()
    libraries = run('ldd', unpacked / 'sabir', code=None)
    assert 'statically linked' in libraries or 'not a dynamic' in libraries, libraries
    for path in (str(args.root), str(pathlib.Path.home() / '.cargo')):
        assert path.encode() not in binary, f'{path} is in the binary'
    _check_parts(json.loads((unpacked / 'sabir.cdx.json').read_text()))


def _check_parts(document):
    assert (document['bomFormat'], document['specVersion']) == ('CycloneDX', '1.5')
    assert document['metadata']['component']['name'] == 'sabir'
    names = {part['name'] for part in document['components']}
    assert {'tokio', 'rustls', 'libsqlite3-sys', 'aws-lc-sys', 'mimalloc', 'sabir-engine'} <= names, names
    assert not {'proptest', 'xtask', 'sabir-testkit', 'serde_derive'} & names, names
    refs = {part['bom-ref'] for part in document['components']} | {document['metadata']['component']['bom-ref']}
    for part in document['components']:
        assert part['licenses'][0]['expression'], part
        assert part['name'].startswith('sabir-') or re.fullmatch('[0-9a-f]{64}', part['hashes'][0]['content']), part
    for entry in document['dependencies']:
        assert {entry['ref'], *entry['dependsOn']} <= refs, entry


def serves(args, folder):
    """With nothing of this machine but the kernel: an empty root file system, and names and certificates that the case puts there."""
    root = machine.Root(folder / 'root')
    (root.folder / 'etc').mkdir(parents=True)
    (root.folder / 'tmp').mkdir()
    binary = root.folder / 'sabir'
    run('cp', unpack(args, folder) / 'sabir', binary)
    (root.folder / 'etc/hosts').write_text('127.0.0.1 localhost\n')
    (root.folder / 'sabir.toml').write_text(CONFIGURATION)
    store = {'SABIR_STORE': 'sqlite:/tmp/sabir.db'}

    def sabir(*words, code=0, **env):
        return root.run('/sabir', *words, code=code, env=env)

    assert 'mimalloc: ' in sabir('--version', MIMALLOC_VERBOSE='1'), 'another allocator is in use'
    serve = root.words('/sabir', 'serve', '--config', '/sabir.toml', '--listen', '127.0.0.1:0', '--dev-tls')
    with Server(serve, env=store) as server:
        assert server.url.startswith('https://'), server.url
        send = ('send', '--config', '/sabir.toml', '--format', 'text', '--agent')
        assert 'echo: hello' in sabir(*send, 'demo', 'hello', **store)
        # A program, under the guard: the only one that is there.
        assert re.search(r'sabir \d+\.\d+\.\d+', sabir(*send, 'version', 'hello', **store))
        # The name comes from /etc/hosts, the authority from the place that systems have for it.
        url = f'https://localhost:{server.url.rsplit(":", 1)[1]}'
        assert 'certificate' in sabir('health', url, code=1), 'an unknown authority is trusted'
        certificates = root.folder / 'etc/ssl/certs'
        certificates.mkdir(parents=True)
        authority = (root.folder / server.ready['ca'].lstrip('/')).read_text()
        (certificates / 'ca-certificates.crt').write_text(authority)
        assert sabir('health', url) == '{"status":"ready"}\n'
        assert 'no-such-name.test' in sabir('health', 'http://no-such-name.test:1', code=1)
        assert server.stop(machine.first_child(server.process.pid)) == 0, server.end()


CONFIGURATION = """
[[agent]]
id = "demo"
kind = "demo"
default = true

[[agent]]
id = "version"
kind = "command"
command = ["/sabir", "--version"]
workspace = "/tmp"
"""


def _archive(args):
    found = list(args.dist.glob('sabir-*-unknown-linux-musl.tar.gz'))
    assert len(found) == 1, found
    return found[0]


def unpack(args, folder):
    archive = _archive(args)
    run('tar', '--extract', '--file', archive, '--directory', folder)
    return folder / archive.name.removesuffix('.tar.gz')

"""The Compose files, read by Compose itself."""

import os
import shutil
import subprocess

from machine import Skipped, run

SECRETS = {'SABIR_AUTH_TOKENS': 'alice:secret-of-alice', 'POSTGRES_PASSWORD': 'secret'}


def files(args, folder):
    compose = _compose()
    for name, services in [('one-node', {'sabir'}), ('three-nodes', {'balancer', 'postgres', 'sabir'})]:
        file = args.root / 'packaging/compose' / f'{name}.yml'
        env = {'PATH': os.environ['PATH'], 'HOME': str(folder)}
        assert set(run(*compose, '-f', file, 'config', '--services', env=env | SECRETS).split()) == services
        shown = run(*compose, '-f', file, 'config', env=env | SECRETS)
        assert 'secret-of-alice' in shown, shown
        # Without credentials nothing is started that nobody could use.
        refused = run(*compose, '-f', file, 'config', env=env, code=None)
        assert 'is not set' in refused, refused
    for needed in ('container/Dockerfile', 'container/Dockerfile.coding', 'compose/nginx.conf'):
        assert (args.root / 'packaging' / needed).is_file(), needed


def _compose():
    """The one of Docker, or that of Debian."""
    plugin = ['docker', 'compose']
    if shutil.which('docker') and subprocess.run([*plugin, 'version'], capture_output=True).returncode == 0:
        return plugin
    if shutil.which('docker-compose'):
        return ['docker-compose']
    raise Skipped('there is no Compose (Debian has it in docker-compose)')

"""A unit of the pages, read by systemd itself, with the program of this run in the place of the installed one."""

import subprocess

INSTALLED = '/usr/local/bin/sabir'


def verify(stage, path, text):
    assert f'ExecStart={INSTALLED}' in text, f'{path.name} starts {INSTALLED}'
    path.write_text(text.replace(INSTALLED, str(stage.args.sabir.resolve())))
    verdict = subprocess.run(['systemd-analyze', 'verify', str(path)], capture_output=True, text=True)
    said = (verdict.stdout + verdict.stderr).strip()
    assert verdict.returncode == 0 and not said, f'systemd says of {path.name}: {said}'

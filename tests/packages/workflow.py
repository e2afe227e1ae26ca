"""The workflow that makes a release: what it runs exists."""

import re
import shutil

from machine import read_yaml, run


def steps(args, folder):
    file = args.root / '.github/workflows/release.yml'
    [workflow] = read_yaml(file)
    jobs = workflow['jobs']
    assert set(jobs) == {'dist', 'images', 'release'}, set(jobs)
    for name, job in jobs.items():
        needed = job.get('needs', [])
        for other in [needed] if isinstance(needed, str) else needed:
            assert other in jobs, f'{name} needs {other}'
        for step in job['steps']:
            assert ('uses' in step) != ('run' in step), step
            if 'run' in step:
                # Expressions are filled in before a shell reads the text.
                script = re.sub(r'\$\{\{.*?\}\}', 'expression', step['run'])
                run('bash', '-n', '-c', script)
                for path in re.findall(r'packaging/[\w./-]+', script):
                    assert (args.root / path).exists(), path
    # The tag is compared with the version as the file really spells it.
    check = jobs['dist']['steps'][1]['run']
    version = re.search(r'\[workspace.package\]\nversion = "(.*)"', (args.root / 'Cargo.toml').read_text())[1]
    for tag, code in [(f'v{version}', 0), ('v999.0.0', 1)]:
        run('bash', '-e', '-c', check, cwd=args.root, env={'GITHUB_REF_NAME': tag, 'PATH': '/usr/bin:/bin'}, code=code)
    if shutil.which('actionlint'):
        run('actionlint', file)

"""The proxies of the pages, started for real on the page's own file.

Only what belongs to the machine is replaced: ports, certificates and Caddy's authority. `curl` of the page then reaches
`agents.example.com` through them, by its settings file. Each proxy must pass on the events of a task while the task works.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import time

from stage import free_port

HOST = 'agents.example.com'
SECONDS = 30

NGINX = """\
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    include {file};
}}
"""

CADDY = """\
{{
    admin off
    local_certs
    skip_install_trust
    http_port {http}
    https_port {https}
    storage file_system {folder}/caddy
    default_bind 127.0.0.1
}}
"""


def start_nginx(stage, path, text):
    certificate, key = _certificate(stage)
    port = free_port()
    text = text.replace('listen 443 ssl', f'listen 127.0.0.1:{port} ssl')
    text = text.replace(f'/etc/letsencrypt/live/{HOST}/fullchain.pem', str(certificate))
    text = text.replace(f'/etc/letsencrypt/live/{HOST}/privkey.pem', str(key))
    path.write_text(text)
    whole = stage.folder / 'nginx.conf'
    user = 'user root;' if os.getuid() == 0 else ''
    whole.write_text(NGINX.format(folder=stage.folder, file=path, user=user))
    words = [_program('nginx'), '-c', str(whole), '-p', str(stage.folder), '-e', str(stage.folder / 'nginx.log')]
    checked = subprocess.run([*words, '-t'], capture_output=True, text=True)
    assert checked.returncode == 0, f'nginx refuses the file: {checked.stderr}'
    _reach(stage, stage.helper(words), port, certificate)


def start_caddy(stage, path, text):
    port = free_port()
    path.write_text(CADDY.format(http=free_port(), https=port, folder=stage.folder) + text)
    log = open(stage.folder / 'caddy.log', 'wb')
    child = stage.helper(
        [_program('caddy'), 'run', '--adapter', 'caddyfile', '--config', str(path)],
        stdout=log, stderr=log, env=stage.environment(),
    )
    root = stage.folder / 'caddy' / 'pki' / 'authorities' / 'local' / 'root.crt'
    _until(root.exists, 'Caddy has made its certificate', child)
    _reach(stage, child, port, root)


def _program(name):
    found = shutil.which(name, path=f'{os.environ["PATH"]}:/usr/sbin')
    assert found, f'{name} is not on the PATH; `cargo xtask test documents` brings one along'
    return found


def _reach(stage, child, port, authority):
    """Leads `curl` to the proxy, and sees that a stream comes through it as it happens."""
    _until(lambda: _accepts(port), f'the proxy accepts connections on {port}', child)
    settings = stage.home / '.curlrc'
    kept = [line for line in settings.read_text().splitlines() if not line.startswith(('connect-to', 'cacert'))]
    kept += [f'connect-to = "{HOST}:443:127.0.0.1:{port}"', f'cacert = "{authority}"']
    settings.write_text('\n'.join(kept) + '\n')
    # Caddy makes the certificate of the name when it starts; the first handshake may come too early.
    card = ['/.well-known/agent-card.json']
    _until(lambda: _curl(stage, *card).returncode == 0, 'the card can be read through the proxy', child)
    _streams(stage)


def _streams(stage):
    """The first events of a task come while it works: only then is it canceled, and the stream ends with that."""
    body = json.dumps({'message': {'parts': [{'text': 'slow 100 hello'}]}})
    words = _words('/message:stream', '-N', '-d', body)
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=stage.environment()) as stream:
        first = _frame(stream.stdout)
        task = first['task']['id']
        assert _frame(stream.stdout)['statusUpdate']['status']['state'] == 'TASK_STATE_WORKING'
        canceled = _curl(stage, f'/tasks/{task}:cancel', '-X', 'POST')
        assert 'TASK_STATE_CANCELED' in canceled.stdout, canceled.stdout
        last = _frame(stream.stdout)
        assert last['statusUpdate']['status']['state'] == 'TASK_STATE_CANCELED', last
        assert stream.wait(SECONDS) == 0
    refused = subprocess.run(
        ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', f'https://{HOST}/tasks'],
        capture_output=True, text=True, env=stage.environment(),
    )
    assert refused.stdout == '401', f'a caller without the token got {refused.stdout}'


def _frame(pipe):
    """The next event, if it comes in time."""
    deadline = time.monotonic() + SECONDS
    data = b''
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
        assert ready, f'no event within {SECONDS} s: the proxy keeps the stream to itself'
        byte = os.read(pipe.fileno(), 1)
        assert byte, f'the stream ended: {data}'
        data += byte
        if data.endswith(b'\n\n'):
            lines = [line for line in data.split(b'\n') if line.startswith(b'data:')]
            if lines:
                return json.loads(lines[0][5:])
            data = b''


def _words(path, *more):
    headers = ['-H', 'Authorization: Bearer s3cret', '-H', 'Content-Type: application/json']
    return ['curl', '-s', *headers, *more, f'https://{HOST}{path}']


def _curl(stage, path, *more):
    return subprocess.run(_words(path, *more), capture_output=True, text=True, env=stage.environment(), timeout=SECONDS)


def _certificate(stage):
    certificate, key = stage.folder / 'certificate.pem', stage.folder / 'key.pem'
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-keyout', key, '-out', certificate,
         '-subj', f'/CN={HOST}', '-addext', f'subjectAltName=DNS:{HOST}'],
        check=True, capture_output=True,
    )
    return certificate, key


def _accepts(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(('127.0.0.1', port)) == 0


def _until(condition, what, child):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert child.poll() is None, f'the proxy ended with {child.returncode} before {what}'
        assert time.monotonic() < deadline, f'not within {SECONDS} s: {what}'
        time.sleep(0.05)

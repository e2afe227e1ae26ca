"""Reads `/metrics` with real parsers, and has a real Prometheus scrape it with the example rules and the dashboard.

    suite.py --sabir FILE --prometheus FILE --promtool FILE

It needs the package prometheus_client. Each case prints `ok - NAME` or `not ok - NAME: reason`.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import argparse
import contextlib
import json
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'docs/examples/observability'
ACCEPT = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
SECONDS = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ('sabir', 'prometheus', 'promtool'):
        parser.add_argument(f'--{program}', required=True, type=lambda path: pathlib.Path(path).resolve())
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = failed = 0
    for name, case in CASES:
        try:
            with tempfile.TemporaryDirectory() as folder:
                case(args, pathlib.Path(folder))
        except Exception as error:
            failed += 1
            print(f'not ok - {name}: {type(error).__name__}: {error}'.replace('\n', ' '), flush=True)
        else:
            passed += 1
            print(f'ok - {name}', flush=True)
    print(f'{passed} passed, {failed} failed', flush=True)
    sys.exit(1 if failed or not passed else 0)


@contextlib.contextmanager
def running(command, folder, **options):
    """A program that ends with the block."""
    with open(folder / f'{pathlib.Path(command[0]).name}.log', 'wb') as log:
        process = subprocess.Popen(command, cwd=folder, stderr=log, stdin=subprocess.DEVNULL, **options)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=SECONDS)


@contextlib.contextmanager
def serving(args, folder):
    """A server that has had some work; its URL."""
    command = [args.sabir, 'serve', '--listen', '127.0.0.1:0', '--store', 'sqlite:sabir.db']
    with running(command, folder, stdout=subprocess.PIPE) as server:
        url = json.loads(server.stdout.readline())['url']
        for number, text in enumerate(('hello', 'fail on purpose', 'ask which one')):
            message = {'messageId': f'm{number}', 'role': 'ROLE_USER', 'parts': [{'text': text}]}
            request(f'{url}/message:send', {'message': message})
        with contextlib.suppress(urllib.error.HTTPError):
            request(f'{url}/tasks/no-such-task')
        yield url


def request(url, body=None, accept='application/json'):
    headers = {'A2A-Version': '1.0', 'Content-Type': 'application/json', 'Accept': accept}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=SECONDS) as reply:
        return reply.headers['Content-Type'], reply.read().decode()


def samples(families):
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for family in families for sample in family.samples}


def open_metrics_is_read_by_the_reference_parser(args, folder):
    with serving(args, folder) as url:
        kind, text = request(f'{url}/metrics', accept=ACCEPT)
    assert kind.startswith('application/openmetrics-text'), kind
    families = list(open_metrics(text))
    found = samples(families)
    assert found['sabir_runs_ended_total', (('agent', 'demo'), ('outcome', 'failed'))] == 1, found
    assert found['sabir_tasks', (('agent', 'demo'), ('state', 'input-required'))] == 1, found
    for family in families:
        assert family.documentation.endswith('.'), family.name
        assert family.name.startswith(('sabir_', 'process_')), family.name
        if family.unit:
            assert family.name.endswith(family.unit), family.name
    assert {'counter', 'gauge', 'histogram', 'info'} == {family.type for family in families}


def both_formats_say_the_same(args, folder):
    moving = ('process_', 'sabir_http_responses', 'sabir_connections')

    def steady(families):
        return {key: value for key, value in samples(families).items() if not key[0].startswith(moving)}

    def newer():
        return steady(open_metrics(request(f'{url}/metrics', accept=ACCEPT)[1]))

    with serving(args, folder) as url:
        # The store may still write: what is the same before and after is the same in between.
        deadline = time.monotonic() + SECONDS
        while True:
            before = newer()
            kind, old = request(f'{url}/metrics', accept='text/plain')
            if before == newer():
                break
            assert time.monotonic() < deadline, 'the figures do not come to rest'
    assert kind.startswith('text/plain; version=0.0.4'), kind
    families = list(plain_text(old))
    assert all(family.type != 'unknown' for family in families), [family.name for family in families]
    assert steady(families) == before


def promtool_finds_nothing_to_complain_of(args, folder):
    with serving(args, folder) as url:
        _, text = request(f'{url}/metrics', accept='text/plain')
    checked = subprocess.run([args.promtool, 'check', 'metrics'], input=text, text=True, capture_output=True, timeout=SECONDS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def the_rules_are_right_and_fire_when_they_should(args, folder):
    for file in EXAMPLES.glob('*.yaml'):
        shutil.copy(file, folder)
    (folder / 'sabir-token').write_text('secret')
    for words in (['check', 'config', 'prometheus.yaml'], ['check', 'rules', 'alerts.yaml'], ['test', 'rules', 'alerts_test.yaml']):
        checked = subprocess.run([args.promtool, *words], cwd=folder, text=True, capture_output=True, timeout=SECONDS)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def prometheus_scrapes_it_and_knows_every_figure_of_rules_and_dashboard(args, folder):
    address = f'127.0.0.1:{free_port()}'
    with serving(args, folder) as url:
        target = urllib.parse.urlsplit(url).netloc
        config = {
            'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'},
            'rule_files': [str(EXAMPLES / 'alerts.yaml')],
            'scrape_configs': [{'job_name': 'sabir', 'static_configs': [{'targets': [target]}]}],
        }
        (folder / 'prometheus.yaml').write_text(json.dumps(config))
        command = [args.prometheus, '--config.file=prometheus.yaml', '--storage.tsdb.path=data', f'--web.listen-address={address}']
        with running(command, folder, stdout=subprocess.DEVNULL):
            api = f'http://{address}/api/v1'
            until(lambda: request(f'http://{address}/-/ready'))
            until(lambda: query(api, 'up{job="sabir"} == 1'))
            until(lambda: query(api, 'rate(sabir_store_commit_seconds_count[30s])'))
            rules = ask(f'{api}/rules')['data']['groups'][0]['rules']
            assert len(rules) == 12 and all(rule['health'] in ('ok', 'unknown') for rule in rules), rules
            names = set(ask(f'{api}/label/__name__/values')['data'])
            for expression in dashboard_expressions():
                query(api, expression)
            # These exist where several servers share a store.
            names |= {'sabir_node_alive', 'sabir_node_beat_age_seconds'}
            used = set(words('sabir_', 'process_'))
            assert used <= names, f'used and not scraped: {used - names}'


def free_port():
    """A port for a program that is told its port: below those that Linux gives away, so that nobody else gets it meanwhile."""
    ports = list(range(15_000, 32_000))
    random.shuffle(ports)
    for port in ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            return port
    raise AssertionError('loopback has no free port')


def dashboard_expressions():
    """What the panels ask for, with the variables that Grafana would fill in."""
    panels = json.loads((EXAMPLES / 'dashboard.json').read_text())['panels']
    expressions = [target['expr'] for panel in panels for target in panel.get('targets', [])]
    assert len(expressions) > 20
    for expression in expressions:
        for variable, value in (('$instance', '.*'), ('$agent', '.*'), ('$__rate_interval', '30s')):
            expression = expression.replace(variable, value)
        assert '$' not in expression, expression
        yield expression


def words(*prefixes):
    """The figures that rules and dashboard name."""
    rules = (EXAMPLES / 'alerts.yaml').read_text()
    expressions = [line for line in rules.splitlines() if 'sabir_' in line or 'process_' in line]
    for expression in [*expressions, *dashboard_expressions()]:
        text = ''.join(letter if letter.isalnum() or letter == '_' else ' ' for letter in expression)
        yield from (word for word in text.split() if word.startswith(prefixes))


def ask(url):
    return json.loads(request(url)[1])


def query(api, expression):
    try:
        return ask(f'{api}/query?query={urllib.parse.quote(expression)}')['data']['result']
    except urllib.error.HTTPError as error:
        raise AssertionError(f'{expression}: {error.read().decode()}') from error


def until(check):
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if check():
                return
        assert time.monotonic() < deadline, 'waited in vain'
        time.sleep(0.1)


CASES = [
    (case.__name__, case)
    for case in (
        open_metrics_is_read_by_the_reference_parser,
        both_formats_say_the_same,
        promtool_finds_nothing_to_complain_of,
        the_rules_are_right_and_fire_when_they_should,
        prometheus_scrapes_it_and_knows_every_figure_of_rules_and_dashboard,
    )
]

if __name__ == '__main__':
    main()

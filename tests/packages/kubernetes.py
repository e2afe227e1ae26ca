"""The example for Kubernetes: it says what `docs/guides/scaling.md` says of it, its parts fit together, and Sabir takes its settings."""

import http.client
import json
import os
import re
import shlex
import tomllib
import urllib.parse

import archive
from machine import Server, read_yaml, run

FILE = 'packaging/kubernetes/three-nodes.yaml'
# As Kubernetes fills in the secret and the name of the pod.
STORE = 'postgres://sabir:secret@postgres/sabir'
FILLED_IN = {'SABIR_CLUSTER_NODE_NAME': 'sabir-0', 'SABIR_STORE': STORE, 'SABIR_AUTH_TOKENS': 'alice:secret-of-alice'}


def example(args, folder):
    text = (args.root / FILE).read_text()
    parts = {document['kind']: document for document in read_yaml(args.root / FILE)}
    assert set(parts) == {'ConfigMap', 'Service', 'StatefulSet', 'PodDisruptionBudget'}, set(parts)
    nodes = parts['StatefulSet']['spec']
    pod = nodes['template']['spec']
    [container] = pod['containers']
    settings_text = parts['ConfigMap']['data']['sabir.toml']
    settings = tomllib.loads(settings_text)

    _check_guide(args, nodes)
    _check_names(parts, nodes, settings)
    _check_environment(text, container, settings_text)
    _check_files(args, parts, nodes, pod, container, settings)
    _check_stop(pod, settings)
    _check_probes(container)
    _check_settings(args, folder, container, settings_text)


def _check_guide(args, nodes):
    guide = ' '.join((args.root / 'docs/guides/scaling.md').read_text().split())
    assert f'[Kubernetes](../../{FILE}) with three replicas as a StatefulSet' in guide
    assert nodes['replicas'] == 3, nodes['replicas']
    version = re.search(r'\[workspace.package\]\nversion = "(.*)"', (args.root / 'Cargo.toml').read_text())[1]
    image = nodes['template']['spec']['containers'][0]['image']
    assert image.endswith(f'/sabir:{version}'), f'{image}, and the workspace is {version}'


def _check_names(parts, nodes, settings):
    """Every selector finds the pods, and the service reaches the port that the settings name."""
    service, budget = parts['Service'], parts['PodDisruptionBudget']['spec']
    labels = nodes['template']['metadata']['labels']
    for selector in (nodes['selector']['matchLabels'], service['spec']['selector'], budget['selector']['matchLabels']):
        assert selector.items() <= labels.items(), f'{selector} does not select {labels}'
    assert nodes['serviceName'] == service['metadata']['name']
    assert 0 < budget['maxUnavailable'] < nodes['replicas'], budget
    # No sticky sessions: any server answers.
    assert service['spec'].get('sessionAffinity', 'None') == 'None', service
    [container_port] = nodes['template']['spec']['containers'][0]['ports']
    [service_port] = service['spec']['ports']
    port = container_port['containerPort']
    assert service_port['targetPort'] in (port, container_port['name']), service_port
    assert settings['server']['listen'] == [f'0.0.0.0:{port}'], settings


def _check_environment(text, container, settings_text):
    """The name of the node is that of its pod; what is secret comes from a secret that the first lines make."""
    env = {variable['name']: variable for variable in container['env']}
    assert env['SABIR_CLUSTER_NODE_NAME']['valueFrom'] == {'fieldRef': {'fieldPath': 'metadata.name'}}, env
    comments = ' '.join(line.lstrip('# ').rstrip('\\') for line in text.splitlines() if line.startswith('#'))
    create = shlex.split(re.search(r'kubectl create secret .*?(?= kubectl apply)', comments)[0])
    made = dict(word.removeprefix('--from-literal=').split('=', 1) for word in create if word.startswith('--from-literal='))
    used = {}
    for name in ('SABIR_STORE', 'SABIR_AUTH_TOKENS'):
        reference = env[name]['valueFrom']['secretKeyRef']
        assert reference['name'] == create[4], f'{reference}, and {create} is made'
        used[name] = made[reference['key']]
    assert used['SABIR_STORE'] == STORE and used['SABIR_AUTH_TOKENS'].startswith('alice:'), used
    for word in ('postgres', 'token', 'secret'):
        assert word not in settings_text, f'{word} is in the ConfigMap'


def _check_files(args, parts, nodes, pod, container, settings):
    """What is mounted where; what the nodes write is on a disk that comes back with the pod."""
    mounts = {mount['name']: mount['mountPath'] for mount in container['volumeMounts']}
    volumes = {volume['name']: volume for volume in pod['volumes']}
    [disk] = nodes['volumeClaimTemplates']
    assert set(mounts) == {*volumes, disk['metadata']['name']}, mounts
    [(volume, source)] = volumes.items()
    assert source['configMap']['name'] == parts['ConfigMap']['metadata']['name'], source
    config = container['args'][container['args'].index('--config') + 1]
    assert config == f'{mounts[volume]}/sabir.toml', config
    home = mounts[disk['metadata']['name']]
    [home_variable] = [variable['value'] for variable in container['env'] if variable['name'] == 'HOME']
    assert home_variable == home and settings['store']['folder'].startswith(f'{home}/'), (home_variable, settings)
    # The user of the image.
    accounts = (args.root / 'packaging/container/passwd').read_text().splitlines()
    [user] = [int(line.split(':')[2]) for line in accounts if line.startswith('sabir:')]
    security = pod['securityContext']
    assert security == {'runAsNonRoot': True, 'runAsUser': user, 'fsGroup': user}, security


def _check_stop(pod, settings):
    """Kubernetes waits until the server has stopped in order."""
    needed = sum(_seconds(settings['server'][name]) for name in ('grace', 'drain'))
    assert pod['terminationGracePeriodSeconds'] > needed, f'{pod["terminationGracePeriodSeconds"]} s, and {needed} s are needed'


def _seconds(text):
    return int(re.fullmatch(r'(\d+)s', text)[1])


def _check_probes(container):
    """A server that takes no work gets no requests, and is not restarted for it."""
    readiness, liveness = container['readinessProbe'], container['livenessProbe']
    port = container['ports'][0]['name']
    assert readiness['httpGet'] == {'path': '/readyz', 'port': port}, readiness
    assert liveness['httpGet'] == {'path': '/healthz', 'port': port}, liveness
    patience = {name: probe['periodSeconds'] * probe['failureThreshold'] for name, probe in (('ready', readiness), ('live', liveness))}
    assert patience['ready'] < patience['live'], patience


def _check_settings(args, folder, container, settings_text):
    """The real program takes the settings, and answers the probes of Kubernetes, which name the address of the pod and no token."""
    sabir = archive.unpack(args, folder) / 'sabir'
    environment = {'PATH': os.environ['PATH'], 'HOME': str(folder)}
    settings = folder / 'sabir.toml'
    words = [settings if word == '/etc/sabir/sabir.toml' else word for word in container['args']]
    assert words[0] == 'serve', words
    settings.write_text(settings_text)
    shown = run(sabir, 'config', '--config', settings, env=environment | FILLED_IN)
    used = {row['key']: row['value'] for row in json.loads(shown)}
    assert used['cluster.node_name'] == 'sabir-0' and used['store.url'] == STORE.replace(':secret', ''), shown
    assert 'secret-of-alice' not in shown, shown

    # There is no Postgres here. Beside SQLite, there is no folder of a node.
    settings.write_text(settings_text.replace('folder = "/var/lib/sabir/node"', f'url = "sqlite:{folder}/sabir.db"'))
    tokens = {'SABIR_AUTH_TOKENS': FILLED_IN['SABIR_AUTH_TOKENS']}
    with Server([sabir, *words, '--listen', '127.0.0.1:0'], env=environment | tokens) as server:
        for path in (container[probe]['httpGet']['path'] for probe in ('readinessProbe', 'livenessProbe')):
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=60)
            connection.request('GET', path, headers={'Host': '10.244.1.7:41242'})
            reply = connection.getresponse()
            assert reply.status == 200, f'{path}: {reply.status} {reply.read()}'
            connection.close()

"""Every method of both versions of A2A, called with messages that are made from the descriptors."""

from cases.generic_grpc.a2a import ONE, THREE, VERSIONS, settled, streamed_text, text_of
from cases.generic_grpc.refusals import refused
from plain import chunks, equal, holds
from receiver import receiving
from reflection_peer import V0_3, V1


async def every_method_of_1_0_can_be_called(peer):
    answer = await peer.unary(V1, 'SendMessage', ONE.send('hello'))
    task = answer['task']
    equal('send', (task['status']['state'], text_of(task['artifacts'][0])), ('TASK_STATE_COMPLETED', 'echo: hello'))
    equal('get', await peer.unary(V1, 'GetTask', {'id': task['id']}), task)
    listed = await peer.unary(V1, 'ListTasks', {'contextId': task['contextId'], 'includeArtifacts': True})
    equal('list', ([each['id'] for each in listed['tasks']], listed['totalSize']), ([task['id']], 1))
    equal('artifacts in the list', listed['tasks'][0]['artifacts'], task['artifacts'])

    frames = await (await peer.stream(V1, 'SendStreamingMessage', ONE.send('stream 3 0'))).rest()
    equal('stream', (streamed_text(frames), _ends(frames)), (chunks(3), 'TASK_STATE_COMPLETED'))
    started = (await peer.unary(V1, 'SendMessage', ONE.start('slow 30')))['task']
    watched = await peer.stream(V1, 'SubscribeToTask', {'id': started['id']})
    equal('snapshot', (await watched.next())['task']['id'], started['id'])
    canceled = await peer.unary(V1, 'CancelTask', {'id': started['id']})
    equal('cancel', canceled['status']['state'], 'TASK_STATE_CANCELED')
    equal('the end for the watcher', _ends(await watched.rest()), 'TASK_STATE_CANCELED')

    async with receiving() as receiver:
        config = {'taskId': task['id'], 'id': 'hook', 'url': receiver.url()}
        equal('set', await peer.unary(V1, 'CreateTaskPushNotificationConfig', {**config, 'token': 't'}), config)
        name = {'taskId': task['id'], 'id': 'hook'}
        equal('get', await peer.unary(V1, 'GetTaskPushNotificationConfig', name), config)
        listed = await peer.unary(V1, 'ListTaskPushNotificationConfigs', {'taskId': task['id']})
        equal('list', listed, {'configs': [config]})
        equal('the token', (await receiver.deliveries.get()).headers['x-a2a-notification-token'], 't')
        equal('delete', await peer.unary(V1, 'DeleteTaskPushNotificationConfig', name), {})
        equal('then', await peer.unary(V1, 'ListTaskPushNotificationConfigs', {'taskId': task['id']}), {})

    await refused(peer, V1, 'GetExtendedAgentCard', {}, 'FAILED_PRECONDITION')
    await _all_were_called(peer, V1)


async def every_method_of_0_3_can_be_called(peer):
    task = (await peer.unary(V0_3, 'SendMessage', THREE.send('hello')))['task']
    equal('send', (task['status']['state'], text_of(task['artifacts'][0])), ('TASK_STATE_COMPLETED', 'echo: hello'))
    name = f'tasks/{task["id"]}'
    equal('get', await peer.unary(V0_3, 'GetTask', {'name': name}), task)

    frames = await (await peer.stream(V0_3, 'SendStreamingMessage', THREE.send('stream 3 0'))).rest()
    equal('stream', (streamed_text(frames), _ends(frames)), (chunks(3), 'TASK_STATE_COMPLETED'))
    started = (await peer.unary(V0_3, 'SendMessage', THREE.start('slow 30')))['task']
    watched = await peer.stream(V0_3, 'TaskSubscription', {'name': f'tasks/{started["id"]}'})
    equal('snapshot', (await watched.next())['task']['id'], started['id'])
    canceled = await peer.unary(V0_3, 'CancelTask', {'name': f'tasks/{started["id"]}'})
    equal('cancel', canceled['status']['state'], 'TASK_STATE_CANCELLED')
    equal('the end for the watcher', _ends(await watched.rest()), 'TASK_STATE_CANCELLED')

    async with receiving() as receiver:
        path = f'{name}/pushNotificationConfigs/hook'
        config = {'name': path, 'pushNotificationConfig': {'id': 'hook', 'url': receiver.url()}}
        told = config['pushNotificationConfig'] | {'token': 't'}
        request = {'parent': name, 'configId': 'hook', 'config': {'name': path, 'pushNotificationConfig': told}}
        equal('set', await peer.unary(V0_3, 'CreateTaskPushNotificationConfig', request), config)
        equal('get', await peer.unary(V0_3, 'GetTaskPushNotificationConfig', {'name': path}), config)
        listed = await peer.unary(V0_3, 'ListTaskPushNotificationConfig', {'parent': name})
        equal('list', listed, {'configs': [config]})
        equal('the token', (await receiver.deliveries.get()).headers['x-a2a-notification-token'], 't')
        equal('delete', await peer.unary(V0_3, 'DeleteTaskPushNotificationConfig', {'name': path}), {})
        equal('then', await peer.unary(V0_3, 'ListTaskPushNotificationConfig', {'parent': name}), {})

    equal('card', (await peer.unary(V0_3, 'GetAgentCard', {}))['protocolVersion'], '0.3.0')
    await _all_were_called(peer, V0_3)


async def a_task_of_one_version_is_the_same_in_the_other(peer):
    first = (await peer.unary(V1, 'SendMessage', ONE.send('stream 3 0')))['task']
    second = await peer.unary(V0_3, 'GetTask', THREE.task(first['id']))
    equal('artifact', text_of(second['artifacts'][0]), text_of(first['artifacts'][0]))
    for of_task in ('id', 'contextId'):
        equal(of_task, second[of_task], first[of_task])


async def a_send_without_a_configuration_waits(peer):
    for version in VERSIONS:
        task = (await peer.unary(version.service, 'SendMessage', version.send('slow 0.3 hi')))['task']
        equal(version.service, task['status']['state'], 'TASK_STATE_COMPLETED')


async def an_empty_configuration_of_0_3_does_not_wait(peer):
    # `blocking` is not set, and in protobuf that is false.
    request = THREE.send('slow 1 hi') | {'configuration': {}}
    task = (await peer.unary(V0_3, 'SendMessage', request))['task']
    holds('state', task['status']['state'] in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'), task)
    equal('then', (await settled(peer, THREE, task['id']))['status']['state'], 'TASK_STATE_COMPLETED')


async def _all_were_called(peer, service):
    described = {method.name for method in (await peer.describe(service)).methods}
    equal('the methods called', {method for of, method in peer.called if of == service}, described)


def _ends(frames):
    return frames[-1]['statusUpdate']['status']['state']

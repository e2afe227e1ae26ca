"""Errors: 1.0 has details that programs read, 0.3 has nothing but text that begins with the name."""

from google.rpc import error_details_pb2

from cases.generic_grpc.a2a import ONE, THREE
from cases.generic_grpc.refusals import detail, fails, refused, status
from plain import equal, holds
from reflection_peer import V0_3, V1

DOMAIN = 'a2a-protocol.org'


async def errors_of_1_0_have_a_reason_and_a_domain(peer):
    done = (await peer.unary(V1, 'SendMessage', ONE.send('hello')))['task']['id']
    nowhere = {'id': 'no-such-task'}
    for method, request, code, reason, metadata in (
        ('GetTask', nowhere, 'NOT_FOUND', 'TASK_NOT_FOUND', {'taskId': 'no-such-task'}),
        ('CancelTask', nowhere, 'NOT_FOUND', 'TASK_NOT_FOUND', {'taskId': 'no-such-task'}),
        ('SubscribeToTask', nowhere, 'NOT_FOUND', 'TASK_NOT_FOUND', {'taskId': 'no-such-task'}),
        ('CancelTask', {'id': done}, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE', {'taskId': done}),
        ('SubscribeToTask', {'id': done}, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION', None),
        ('SendMessage', ONE.send('more', taskId=done), 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION', None),
        ('SendStreamingMessage', ONE.send('x', taskId='no-such-task'), 'NOT_FOUND', 'TASK_NOT_FOUND', None),
        ('GetExtendedAgentCard', {}, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION', None),
    ):
        error = await refused(peer, V1, method, request, code)
        info = detail(error, error_details_pb2.ErrorInfo())
        equal(f'{method}: reason and domain', (info.reason, info.domain), (reason, DOMAIN))
        if metadata is not None:
            equal(f'{method}: metadata', dict(info.metadata), metadata)


async def bad_requests_of_1_0_name_their_fields(peer):
    task = (await peer.unary(V1, 'SendMessage', ONE.send('hello')))['task']['id']
    without_parts = {'message': {'messageId': 'm', 'role': 'ROLE_USER'}}
    private = {'taskId': task, 'id': 'hook', 'url': 'http://10.0.0.1/hook'}
    for method, request, field in (
        ('GetTask', {'id': task, 'historyLength': -1}, 'historyLength'),
        ('ListTasks', {'pageSize': 1000}, 'pageSize'),
        ('ListTasks', {'pageToken': 'made up'}, 'pageToken'),
        ('SendMessage', without_parts, 'message.parts'),
        ('SendStreamingMessage', without_parts, 'message.parts'),
        ('CreateTaskPushNotificationConfig', private, 'url'),
    ):
        error = await refused(peer, V1, method, request, 'INVALID_ARGUMENT')
        violations = detail(error, error_details_pb2.BadRequest()).field_violations
        equal(f'fields of {method}', [each.field for each in violations], [field])
        holds('a description', violations[0].description, violations)
        equal('domain', detail(error, error_details_pb2.ErrorInfo()).domain, DOMAIN)


async def errors_of_0_3_begin_with_their_name(peer):
    done = (await peer.unary(V0_3, 'SendMessage', THREE.send('hello')))['task']['id']
    nowhere = {'name': 'tasks/no-such-task'}
    for method, request, code, text in (
        ('GetTask', nowhere, 'NOT_FOUND', 'TaskNotFoundError: task no-such-task does not exist'),
        ('CancelTask', nowhere, 'NOT_FOUND', 'TaskNotFoundError: '),
        ('TaskSubscription', nowhere, 'NOT_FOUND', 'TaskNotFoundError: '),
        ('SendMessage', THREE.send('x', taskId='no-such-task'), 'NOT_FOUND', 'TaskNotFoundError: '),
        ('CancelTask', {'name': f'tasks/{done}'}, 'FAILED_PRECONDITION', 'TaskNotCancelableError: '),
        ('SendMessage', THREE.send('more', taskId=done), 'FAILED_PRECONDITION', 'UnsupportedOperationError: '),
        ('SendMessage', {'request': {'messageId': 'm', 'role': 'ROLE_USER'}}, 'INVALID_ARGUMENT', 'InvalidParamsError: '),
    ):
        error = await refused(peer, V0_3, method, request, code)
        holds(f'{method}: wanted {text}', error.details().startswith(text), error.details())
        equal('details', status(error), None)


async def unknown_methods_and_services_are_unimplemented(peer):
    for path in (f'/{V1}/NoSuchMethod', f'/{V0_3}/ListTasks', '/no.such.Service/Method', '/grpc.health.v1.Health/No'):
        error = await fails(peer.channel.unary_unary(path)(b''))
        equal(path, error.code().name, 'UNIMPLEMENTED')


async def bytes_that_are_no_message_are_refused(peer):
    for service in (V1, V0_3):
        error = await fails(peer.channel.unary_unary(f'/{service}/SendMessage')(b'\xff\xff\xff'))
        equal(service, error.code().name, 'INVALID_ARGUMENT')


async def metadata_may_name_the_version_of_the_service_and_no_other(peer):
    for service, version, other in ((V1, '1.0', '0.3'), (V0_3, '0.3', '1.0')):
        task = ONE.task('no-such-task') if service == V1 else THREE.task('no-such-task')
        await refused(peer, service, 'GetTask', task, 'NOT_FOUND', metadata=[('a2a-version', version)])
        error = await refused(peer, service, 'GetTask', task, None, metadata=[('a2a-version', other)])
        said = error.details() if service == V0_3 else detail(error, error_details_pb2.ErrorInfo()).reason
        wanted = 'VersionNotSupportedError' if service == V0_3 else 'VERSION_NOT_SUPPORTED'
        holds(f'{service}: wanted {wanted}', said.startswith(wanted), (error.code(), said))

"""What reflection tells: the services, and every method of both versions of A2A."""

import asyncio

import grpc

from google.protobuf import descriptor_pool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from plain import equal, holds
from reflection_peer import V0_3, V1

SERVICES = [
    'a2a.v1.A2AService',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
    'lf.a2a.v1.A2AService',
]

# Method, what it takes, what it gives, and whether that is a stream.
METHODS = {
    V1: [
        ('CancelTask', 'CancelTaskRequest', 'Task', False),
        ('CreateTaskPushNotificationConfig', 'TaskPushNotificationConfig', 'TaskPushNotificationConfig', False),
        ('DeleteTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfigRequest', 'Empty', False),
        ('GetExtendedAgentCard', 'GetExtendedAgentCardRequest', 'AgentCard', False),
        ('GetTask', 'GetTaskRequest', 'Task', False),
        ('GetTaskPushNotificationConfig', 'GetTaskPushNotificationConfigRequest', 'TaskPushNotificationConfig', False),
        (
            'ListTaskPushNotificationConfigs',
            'ListTaskPushNotificationConfigsRequest',
            'ListTaskPushNotificationConfigsResponse',
            False,
        ),
        ('ListTasks', 'ListTasksRequest', 'ListTasksResponse', False),
        ('SendMessage', 'SendMessageRequest', 'SendMessageResponse', False),
        ('SendStreamingMessage', 'SendMessageRequest', 'StreamResponse', True),
        ('SubscribeToTask', 'SubscribeToTaskRequest', 'StreamResponse', True),
    ],
    V0_3: [
        ('CancelTask', 'CancelTaskRequest', 'Task', False),
        (
            'CreateTaskPushNotificationConfig',
            'CreateTaskPushNotificationConfigRequest',
            'TaskPushNotificationConfig',
            False,
        ),
        ('DeleteTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfigRequest', 'Empty', False),
        ('GetAgentCard', 'GetAgentCardRequest', 'AgentCard', False),
        ('GetTask', 'GetTaskRequest', 'Task', False),
        ('GetTaskPushNotificationConfig', 'GetTaskPushNotificationConfigRequest', 'TaskPushNotificationConfig', False),
        (
            'ListTaskPushNotificationConfig',
            'ListTaskPushNotificationConfigRequest',
            'ListTaskPushNotificationConfigResponse',
            False,
        ),
        ('SendMessage', 'SendMessageRequest', 'SendMessageResponse', False),
        ('SendStreamingMessage', 'SendMessageRequest', 'StreamResponse', True),
        ('TaskSubscription', 'TaskSubscriptionRequest', 'StreamResponse', True),
    ],
}

NOT_FOUND = grpc.StatusCode.NOT_FOUND.value[0]


async def both_versions_of_reflection_list_all_services(peer):
    for version in ('v1', 'v1alpha'):
        equal(version, await peer.services(version), SERVICES)


async def every_method_of_every_version_is_described(peer):
    for service, expected in METHODS.items():
        described = await peer.describe(service)
        methods = [_shape(method) for method in described.methods]
        equal(service, sorted(methods), expected)
        package = described.file.package
        for method in described.methods:
            for message in (method.input_type, method.output_type):
                holds('a package', message.file.package in (package, 'google.protobuf'), message.full_name)


async def the_other_services_are_described(peer):
    health = await peer.describe('grpc.health.v1.Health')
    equal('health', sorted(method.name for method in health.methods), ['Check', 'List', 'Watch'])
    for version in ('v1', 'v1alpha'):
        reflection = await peer.describe(f'grpc.reflection.{version}.ServerReflection')
        equal(version, [method.name for method in reflection.methods], ['ServerReflectionInfo'])


async def the_database_of_the_library_finds_the_same(peer):
    # It speaks v1alpha, and blocks.
    def read():
        with grpc.insecure_channel(peer.address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            pool = descriptor_pool.DescriptorPool(database)
            names = sorted(database.get_services())
            return names, {each: [_shape(m) for m in pool.FindServiceByName(each).methods] for each in METHODS}

    names, shapes = await asyncio.to_thread(read)
    equal('services', names, SERVICES)
    equal('methods', {each: sorted(shape) for each, shape in shapes.items()}, METHODS)


async def messages_methods_and_files_are_found_by_name(peer):
    for question in (
        {'file_containing_symbol': 'lf.a2a.v1.Task'},
        {'file_containing_symbol': 'lf.a2a.v1.A2AService.GetTask'},
        {'file_containing_symbol': 'lf.a2a.v1.TaskState'},
        {'file_containing_symbol': 'a2a.v1.Message'},
        {'file_containing_symbol': 'google.protobuf.Struct'},
        {'file_by_filename': 'google/protobuf/timestamp.proto'},
    ):
        [answer] = await peer.reflect(question)
        holds(f'a file for {question}', answer.file_descriptor_response.file_descriptor_proto, answer)


async def an_unknown_name_is_an_answer_and_the_stream_continues(peer):
    questions = [
        {'file_containing_symbol': 'no.such.Symbol'},
        {'file_by_filename': 'no_such_file.proto'},
        {'all_extension_numbers_of_type': 'no.such.Type'},
        {'list_services': ''},
    ]
    *unknown, listed = await peer.reflect(*questions)
    equal('errors', [answer.error_response.error_code for answer in unknown], [NOT_FOUND] * 3)
    equal('services', len(listed.list_services_response.service), len(SERVICES))


def _shape(method):
    return method.name, method.input_type.name, method.output_type.name, method.server_streaming

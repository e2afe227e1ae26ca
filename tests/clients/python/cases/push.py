"""Push: webhooks are set, read, listed and deleted, and a real receiver gets bodies that the SDK's own types accept."""

from plain import INVALID_PARAMS, TASK_NOT_FOUND, Task, Webhook, artifact_texts, chunks, equal, holds
from receiver import receiving

TOKEN = 'the-token-of-the-hook'


async def the_card_promises_push(peer):
    equal('push', peer.card().push, True)


async def a_push_config_is_set_and_read_without_its_token(peer):
    async with receiving() as receiver:
        task = await peer.send('ask Which day?')
        wanted = Webhook(task.id, 'hook', receiver.url(), None)
        equal('set', await peer.set_push(task.id, 'hook', receiver.url(), TOKEN), wanted)
        equal('get', await peer.get_push(task.id, 'hook'), wanted)


async def push_configs_are_listed(peer):
    async with receiving() as receiver:
        task = await peer.send('ask Which day?')
        equal('none yet', await peer.list_push(task.id), [])
        for name in ('a', 'b'):
            await peer.set_push(task.id, name, receiver.url(f'/{name}'), TOKEN)
        wanted = [Webhook(task.id, name, receiver.url(f'/{name}'), None) for name in ('a', 'b')]
        equal('list', await peer.list_push(task.id), wanted)


async def a_deleted_push_config_is_gone_and_gets_nothing(peer):
    async with receiving() as receiver:
        task = await peer.send('ask Which day?')
        await peer.set_push(task.id, 'kept', receiver.url('/kept'), TOKEN)
        await peer.set_push(task.id, 'hook', receiver.url('/deleted'), TOKEN)
        for _ in range(2):
            await peer.delete_push(task.id, 'hook')
            equal('list', [each.id for each in await peer.list_push(task.id)], ['kept'])
        await peer.send('Friday', task=task.id, context=task.context)
        seen = await receiver.until(peer.read_delivery, 'completed')
        equal('paths', {delivery.path for delivery, _ in seen}, {'/kept'})


async def a_push_config_that_is_set_after_the_end_gets_the_end(peer):
    async with receiving() as receiver:
        task = await peer.send('hello')
        await peer.set_push(task.id, 'hook', receiver.url(), TOKEN)
        seen = await receiver.until(peer.read_delivery, 'completed')
        equal('deliveries', len(seen), 1)
        _is_end_of(task, seen)


async def a_message_brings_its_webhook(peer):
    async with receiving() as receiver:
        webhook = Webhook(None, 'hook', receiver.url('/a?b=c'), TOKEN)
        task = await peer.send('hello', webhook=webhook)
        seen = await receiver.until(peer.read_delivery, 'completed')
        equal('states', [body.state for _, body in seen], ['working', 'completed'])
        _is_end_of(task, seen)
        for delivery, _ in seen:
            equal('request', (delivery.verb, delivery.path), ('POST', '/a?b=c'))
            # This is the header in which the receivers of the SDKs look for the token.
            equal('token', delivery.headers.get('x-a2a-notification-token'), TOKEN)
            is_v1 = peer.version == '1.0'
            equal('type', delivery.headers['content-type'], 'application/a2a+json' if is_v1 else 'application/json')
            equal('bearer', delivery.headers.get('authorization'), None if is_v1 else f'Bearer {TOKEN}')
        ids = [delivery.headers['webhook-id'] for delivery, _ in seen]
        equal('different ids of deliveries', len(set(ids)), len(ids))
        equal('list', await peer.list_push(task.id), [Webhook(task.id, 'hook', webhook.url, None)])


async def a_streamed_message_brings_its_webhook(peer):
    async with receiving() as receiver:
        webhook = Webhook(None, 'hook', receiver.url(), TOKEN)
        frames = [frame async for frame in peer.stream('stream 3 0', webhook=webhook)]
        equal('the stream', artifact_texts(frames), [chunks(3)])
        body = (await receiver.until(peer.read_delivery, 'completed'))[-1][1]
        equal('the webhook', artifact_texts([body]), [chunks(3)])


async def a_webhook_hears_of_the_question_and_of_what_follows(peer):
    async with receiving() as receiver:
        asking = await peer.send('ask Which day?', webhook=Webhook(None, 'hook', receiver.url(), TOKEN))
        seen = await receiver.until(peer.read_delivery, 'input-required')
        equal('question', seen[-1][1].says, 'Which day?')
        await peer.send('Friday', task=asking.id, context=asking.context)
        seen = await receiver.until(peer.read_delivery, 'completed')
        equal('then', [body.state for _, body in seen], ['working', 'completed'])


async def a_push_config_to_a_private_address_is_refused(peer):
    task = await peer.send('ask Which day?')
    for url in ('http://10.0.0.1/hook', 'http://169.254.169.254/latest', 'file:///etc/passwd'):
        await peer.refused(INVALID_PARAMS, peer.set_push(task.id, 'hook', url, TOKEN))
        await peer.refused(INVALID_PARAMS, peer.send('hello', webhook=Webhook(None, 'hook', url, TOKEN)))
    equal('list', await peer.list_push(task.id), [])


async def a_push_config_of_an_unknown_task_is_not_found(peer):
    async with receiving() as receiver:
        await peer.refused(TASK_NOT_FOUND, peer.set_push('no-such-task', 'hook', receiver.url(), TOKEN))
        await peer.refused(TASK_NOT_FOUND, peer.get_push('no-such-task', 'hook'))
        await peer.refused(TASK_NOT_FOUND, peer.list_push('no-such-task'))


def _is_end_of(task, seen):
    end = seen[-1][1]
    holds('a whole task', isinstance(end, Task), end)
    equal('the end', (end.id, end.context, end.state), (task.id, task.context, task.state))
    equal('artifacts', end.artifacts, task.artifacts)

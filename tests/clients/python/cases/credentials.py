"""Callers with credentials over HTTPS: each SDK finds out from the card what to show, and shows it by itself."""

import contextlib

from plain import FORBIDDEN, TASK_NOT_FOUND, Webhook, artifact_texts, chunks, equal, holds, of_subscription
from receiver import receiving

# One that shows a bearer token, and one that shows an API key.
CALLERS = 'alice', 'robot'


async def the_card_says_which_credentials_count(server):
    schemes, enough = (await server.nobody()).security()
    equal('bearer', schemes['bearer'], ('http', 'Bearer'))
    equal('the API key', (schemes['apiKey'][0], schemes['apiKey'][1].lower()), ('apiKey', 'x-api-key'))
    equal('each of them is enough', sorted(enough), sorted([name] for name in schemes))


async def a_client_that_does_not_trust_the_certificate_does_not_connect(server):
    try:
        await server.stranger()
    except Exception as error:  # each SDK has its own
        holds('the certificate is the reason', 'CERTIFICATE_VERIFY_FAILED' in str(error), error)
        return
    raise AssertionError('the card was read')


async def callers_with_credentials_send_and_get(server):
    for name in CALLERS:
        peer = await server.peer(name)
        task = await peer.send('hello')
        equal(f'task of {name}', (task.state, task.artifacts[0].text), ('completed', 'echo: hello'))
        equal('get', (await peer.get(task.id)).artifacts[0].text, 'echo: hello')


async def callers_with_credentials_continue_a_task(server):
    for name in CALLERS:
        peer = await server.peer(name)
        asking = await peer.send('ask Which day?')
        done = await peer.send('Friday', task=asking.id, context=asking.context)
        equal(f'task of {name}', (done.id, done.state), (asking.id, 'completed'))


async def callers_with_credentials_stream_and_come_back_to_a_stream(server):
    for name in CALLERS:
        peer = await server.peer(name)
        frames = [frame async for frame in peer.stream('stream 5 0')]
        equal(f'text for {name}', artifact_texts(frames), [chunks(5)])
        task = await peer.start('stream 10 50')
        frames = [frame async for frame in peer.subscribe(task.id)]
        equal(f'snapshot and rest for {name}', artifact_texts(frames), [chunks(10)])


async def callers_with_credentials_cancel(server):
    for name in CALLERS:
        peer = await server.peer(name)
        task = await peer.start('slow 30')
        equal(f'state for {name}', (await peer.cancel(task.id)).state, 'canceled')


async def callers_with_credentials_have_webhooks(server):
    async with receiving() as receiver:
        for name in CALLERS:
            peer = await server.peer(name)
            task = await peer.send('ask Which day?')
            wanted = Webhook(task.id, 'hook', receiver.url(), None)
            equal(f'set by {name}', await peer.set_push(task.id, 'hook', receiver.url(), 'token'), wanted)
            equal('get', await peer.get_push(task.id, 'hook'), wanted)
            equal('list', await peer.list_push(task.id), [wanted])
            await peer.send('Friday', task=task.id, context=task.context)
            await receiver.until(peer.read_delivery, 'completed')
            await peer.delete_push(task.id, 'hook')
            equal('list', await peer.list_push(task.id), [])


async def a_caller_without_a_credential_is_told_401(server):
    await _is_shut_out(await server.nobody())


async def a_caller_with_a_wrong_credential_is_told_401(server):
    for scheme in ('bearer', 'apiKey'):
        await _is_shut_out(await server.peer_with(scheme, 'a-secret-that-nobody-has'))


async def the_secret_of_one_scheme_does_not_count_in_another(server):
    callers = server.told['callers']
    for scheme, other in (('bearer', 'robot'), ('apiKey', 'alice')):
        peer = await server.peer_with(scheme, callers[other]['secret'])
        await peer.shut_out(401, peer.send('hello'))


async def the_task_of_another_caller_is_not_found(server):
    alice = await server.peer('alice')
    task = await alice.send('ask Which day?')
    async with receiving() as receiver:
        await alice.set_push(task.id, 'hook', receiver.url(), 'token')
        for name in ('bob', 'robot', 'reader'):
            peer = await server.peer(name)
            await peer.refused(TASK_NOT_FOUND, peer.get(task.id))
            await peer.refused(of_subscription(peer, TASK_NOT_FOUND), anext(peer.subscribe(task.id)))
            await peer.refused(TASK_NOT_FOUND, peer.get_push(task.id, 'hook'))
            await peer.refused(TASK_NOT_FOUND, peer.list_push(task.id))
        for name in ('bob', 'robot'):
            peer = await server.peer(name)
            await peer.refused(TASK_NOT_FOUND, peer.cancel(task.id))
            await peer.refused(TASK_NOT_FOUND, peer.send('Friday', task=task.id))
            await peer.refused(TASK_NOT_FOUND, anext(peer.stream('Friday', task=task.id)))
            await peer.refused(TASK_NOT_FOUND, peer.set_push(task.id, 'other', receiver.url(), 'token'))
            await peer.refused(TASK_NOT_FOUND, peer.delete_push(task.id, 'hook'))
        equal('its webhooks', [each.id for each in await alice.list_push(task.id)], ['hook'])
    equal('it is as it was', (await alice.get(task.id)).state, 'input-required')


async def a_caller_who_may_only_read_is_told_403_when_it_sends(server):
    reader = await server.peer('reader')
    await reader.shut_out(403, reader.send('hello'))
    async with contextlib.aclosing(reader.stream('hello')) as frames:
        if reader.version == '0.2':
            # This SDK does not look at the status, and reads the error in the stream.
            await reader.refused(FORBIDDEN, anext(frames))
        else:
            await reader.shut_out(403, anext(frames))
    await reader.refused(TASK_NOT_FOUND, reader.get('no-such-task'))


async def the_extended_card_is_for_callers_with_credentials(server):
    nobody = await server.nobody()
    await nobody.shut_out(401, nobody.extended_card())
    for name in CALLERS:
        peer = await server.peer(name)
        holds('the public card promises it', peer.promises_extended_card(), peer.sdk_card)
        equal(f'the name for {name}', (await peer.extended_card()).name, peer.card().name)
        # The client reads from the new card what to show from now on.
        equal('state', (await peer.send('hello')).state, 'completed')


async def a_token_of_the_issuer_on_the_card_counts(server):
    schemes, enough = (await server.nobody()).security()
    equal('the scheme', (schemes['oauth2'][0], ['oauth2'] in enough), ('oauth2', True))
    peer = await server.peer_with('oauth2', await server.token_of_issuer())
    task = await peer.send('hello')
    equal('task', (task.state, (await peer.get(task.id)).id), ('completed', task.id))
    frames = [frame async for frame in peer.stream('stream 3 0')]
    equal('stream', artifact_texts(frames), [chunks(3)])
    alice = await server.peer('alice')
    await alice.refused(TASK_NOT_FOUND, alice.get(task.id))


async def a_token_of_the_issuer_that_was_tampered_with_does_not_count(server):
    head, claims, signature = (await server.token_of_issuer()).split('.')
    await _is_shut_out(await server.peer_with('oauth2', f'{head}.{claims}.{signature[::-1]}'))


async def a_token_of_the_issuer_has_the_scopes_that_it_names(server):
    peer = await server.peer_with('oauth2', await server.token_of_issuer(scope='read'))
    await peer.shut_out(403, peer.send('hello'))
    await peer.refused(TASK_NOT_FOUND, peer.get('no-such-task'))


async def _is_shut_out(peer):
    """Whatever it asks, and whether or not there is such a task."""
    await peer.shut_out(401, peer.send('hello'))
    await peer.shut_out(401, peer.send('hello', task='no-such-task'))
    async with contextlib.aclosing(peer.stream('hello')) as frames:
        await peer.shut_out(_status_of(peer, 'stream', 401), anext(frames))
    async with contextlib.aclosing(peer.subscribe('no-such-task')) as frames:
        await peer.shut_out(_status_of(peer, 'subscribe', 401), anext(frames))
    await peer.shut_out(401, peer.get('no-such-task'))
    await peer.shut_out(401, peer.cancel('no-such-task'))
    await peer.shut_out(401, peer.set_push('no-such-task', 'hook', 'http://127.0.0.1:1/', 'token'))
    await peer.shut_out(401, peer.get_push('no-such-task', 'hook'))
    await peer.shut_out(401, peer.list_push('no-such-task'))
    await peer.shut_out(401, peer.delete_push('no-such-task', 'hook'))


def _status_of(peer, call, status):
    """Some SDKs look at the content type before the status, and call any answer but a stream a 400."""
    return 400 if call in peer.hides_status_of else status

"""Push: the server offers none yet, says so on its card, and refuses every call about it."""

from plain import PUSH_NOT_SUPPORTED, equal


async def the_card_promises_no_push(peer):
    equal('push', bool(peer.card().push), False)


async def setting_a_push_config_is_refused(peer):
    await _refused(peer, peer.set_push)


async def getting_a_push_config_is_refused(peer):
    await _refused(peer, peer.get_push)


async def listing_push_configs_is_refused(peer):
    await _refused(peer, peer.list_push)


async def deleting_a_push_config_is_refused(peer):
    await _refused(peer, peer.delete_push)


async def _refused(peer, call):
    task = await peer.send('hello')
    await peer.refused(PUSH_NOT_SUPPORTED, call(task.id))

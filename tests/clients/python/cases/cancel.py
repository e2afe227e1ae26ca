"""Canceling."""

from plain import TASK_NOT_CANCELABLE, TASK_NOT_FOUND, equal


async def a_task_at_work_can_be_canceled(peer):
    task = await peer.start('slow 30')
    equal('state', (await peer.cancel(task.id)).state, 'canceled')
    equal('state on get', (await peer.get(task.id)).state, 'canceled')


async def a_waiting_task_can_be_canceled(peer):
    task = await peer.send('ask Which day?')
    equal('state', (await peer.cancel(task.id)).state, 'canceled')


async def a_finished_task_cannot_be_canceled(peer):
    task = await peer.send('hello')
    await peer.refused(TASK_NOT_CANCELABLE, peer.cancel(task.id))


async def a_canceled_task_cannot_be_canceled_again(peer):
    task = await peer.send('ask Which day?')
    await peer.cancel(task.id)
    await peer.refused(TASK_NOT_CANCELABLE, peer.cancel(task.id))


async def an_unknown_task_cannot_be_canceled(peer):
    await peer.refused(TASK_NOT_FOUND, peer.cancel('no-such-task'))

"""Listing tasks, which only 1.0 can do."""

import asyncio

from a2a.types import TaskState

from plain import equal, holds


async def a_list_of_one_context_shows_its_tasks_newest_first(peer):
    context, ids = await _three_tasks(peer)
    await peer.send('stranger')
    page = await peer.list(context_id=context)
    equal('tasks', [task.id for task in page.tasks], ids)
    equal('all of them', (page.total_size, page.next_page_token), (3, ''))
    holds('page size', page.page_size >= 3, page.page_size)
    times = [task.status.timestamp.ToNanoseconds() for task in page.tasks]
    equal('times', times, sorted(times, reverse=True))


async def a_list_can_be_narrowed_to_one_state(peer):
    context, ids = await _three_tasks(peer)
    completed = await peer.list(context_id=context, status=TaskState.TASK_STATE_COMPLETED)
    equal('completed', [task.id for task in completed.tasks], ids[1:])
    waiting = await peer.list(context_id=context, status=TaskState.TASK_STATE_INPUT_REQUIRED)
    equal('waiting', [task.id for task in waiting.tasks], ids[:1])
    equal('failed', list((await peer.list(context_id=context, status=TaskState.TASK_STATE_FAILED)).tasks), [])


async def a_list_can_be_read_page_by_page(peer):
    context, ids = await _three_tasks(peer)
    seen, token = [], ''
    while True:
        page = await peer.list(context_id=context, page_size=1, page_token=token)
        equal('sizes', (len(page.tasks), page.page_size, page.total_size), (1, 1, 3))
        seen.append(page.tasks[0].id)
        token = page.next_page_token
        if not token or len(seen) > len(ids):
            break
    equal('tasks', seen, ids)


async def a_list_shows_artifacts_only_when_asked(peer):
    context, _ = await _three_tasks(peer)
    without = await peer.list(context_id=context)
    equal('without', [len(task.artifacts) for task in without.tasks], [0, 0, 0])
    with_them = await peer.list(context_id=context, include_artifacts=True)
    equal('with', [len(task.artifacts) for task in with_them.tasks], [0, 1, 1])


async def a_list_can_start_at_a_time(peer):
    context, ids = await _three_tasks(peer)
    middle = (await peer.list(context_id=context)).tasks[1].status.timestamp
    page = await peer.list(context_id=context, status_timestamp_after=middle)
    equal('tasks', [task.id for task in page.tasks], ids[:2])


async def a_list_obeys_history_length(peer):
    context, _ = await _three_tasks(peer)
    for length in (0, 1):
        page = await peer.list(context_id=context, history_length=length)
        equal(f'the last {length}', [len(task.history) for task in page.tasks], [length] * 3)


async def a_list_of_an_unknown_context_is_empty(peer):
    page = await peer.list(context_id='no-such-context')
    equal('tasks', (list(page.tasks), page.total_size, page.next_page_token), ([], 0, ''))


async def _three_tasks(peer):
    """A context with two completed tasks and a waiting one; the ids newest first."""
    first = await peer.send('one')
    ids = [first.id]
    for words in ('two', 'ask three?'):
        # Times are told in milliseconds, so the next task must not end within the same one.
        await asyncio.sleep(0.01)
        ids.insert(0, (await peer.send(words, context=first.context)).id)
    return first.context, ids

"""The agent of all servers here: it obeys the first word of a message, as Sabir's demo agent does.

Two words are its own, by which a client sees what others have done here. `running` tells how many other turns are
running, so what a cancel has stopped. `latest` tells the ids of the task and the context of the last turn that was
something else.

The SDKs have the same executor and updater since 0.2, so only what a version spells in its own way (parts, a first
task, a message) comes from outside, as a `spelling` module. No status is marked as final by hand: what a stream of a
version looks like is the choice of its SDK.
"""

import asyncio

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater


class WordsAgent(AgentExecutor):
    def __init__(self, spelling):
        self.spelling = spelling
        self.running = 0
        self.latest = {'task': '', 'context': ''}

    async def execute(self, context, event_queue):
        self.running += 1
        try:
            await self.run(context, event_queue)
        finally:
            self.running -= 1

    async def cancel(self, context, event_queue):
        # The SDK cancels the coroutine of `execute`, and with it whatever sleeps there.
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def run(self, context, event_queue):
        text = context.get_user_input(' ').strip()
        word, rest = split(text)
        if word != 'latest':
            self.latest = {'task': context.task_id, 'context': context.context_id}
        if word == 'message' and context.current_task is None:
            await event_queue.enqueue_event(self.spelling.message(rest or 'hello', context.context_id))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(self.spelling.task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        others = [part for part in context.message.parts if not self.spelling.is_text(part)]
        await Turn(self, updater, others).obey(text)


class Turn:
    """One message of one task, which is working."""

    def __init__(self, agent, updater, others):
        self.agent = agent
        self.spelling = agent.spelling
        self.updater = updater
        self.others = others

    async def obey(self, text):
        word, rest = split(text)
        action = WORDS.get(word)
        # A word whose numbers are missing is plain text.
        if action is None or not await action(self, text, rest):
            await self.echo(text)

    async def echo(self, text):
        parts = [self.spelling.text(f'echo: {text}')] if text else []
        await self.complete(parts + self.others)

    async def slow(self, text, rest):
        seconds, rest = split(rest)
        if not is_number(seconds):
            return False
        await asyncio.sleep(float(seconds))
        if split(rest)[0] in WORDS:
            await self.obey(rest)
        else:
            await self.echo(text)
        return True

    async def stream(self, _text, rest):
        count, milliseconds = split(rest)
        milliseconds = milliseconds or '50'
        if not count.isdigit() or int(count) == 0 or not is_number(milliseconds):
            return False
        last = int(count)
        for i in range(1, last + 1):
            part = self.spelling.text(f'chunk {i}\n')
            await self.updater.add_artifact([part], 'stream', 'result', append=i > 1, last_chunk=i == last)
            if i < last:
                await asyncio.sleep(float(milliseconds) / 1000)
        await self.updater.complete()
        return True

    async def fail(self, _text, rest):
        return await self.stop(self.updater.failed, rest or 'failed')

    async def reject(self, _text, rest):
        return await self.stop(self.updater.reject, rest)

    async def ask(self, _text, rest):
        return await self.stop(self.updater.requires_input, rest)

    async def auth(self, _text, rest):
        return await self.stop(self.updater.requires_auth, rest)

    async def file(self, _text, _rest):
        return await self.complete([self.spelling.file(b'Hello file', 'output.txt', 'text/plain')])

    async def url(self, _text, _rest):
        return await self.complete([self.spelling.url('https://example.com/output.txt', 'output.txt', 'text/plain')])

    async def data(self, _text, _rest):
        return await self.complete([self.spelling.data({'key': 'value', 'count': 42})])

    async def running(self, _text, _rest):
        return await self.complete([self.spelling.text(f'running: {self.agent.running - 1}')])

    async def latest(self, _text, _rest):
        return await self.complete([self.spelling.data(self.agent.latest)])

    async def complete(self, parts):
        await self.updater.add_artifact(parts, name='result')
        await self.updater.complete()
        return True

    async def stop(self, change_status, text):
        await change_status(self.updater.new_agent_message([self.spelling.text(text)]))
        return True


# Each is told the whole text and what follows the word, and says whether it understood.
WORDS = {
    action.__name__: action
    for action in (
        *(Turn.slow, Turn.stream, Turn.fail, Turn.reject, Turn.ask, Turn.auth),
        *(Turn.file, Turn.url, Turn.data, Turn.running, Turn.latest),
    )
}


def split(text):
    """The first word, and the rest."""
    word, _, rest = text.partition(' ')
    return word, rest.strip()


def is_number(text):
    try:
        return 0 <= float(text) < 1e6
    except ValueError:
        return False

"""The tasks extension of the modern era, as a client of the SDK declares one: a call is answered with a task, and the client polls."""

from typing import Any, Literal

import anyio
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Request, RequestParams, Result

from stage import PATIENCE, User, begin, failure, words

TASKS = 'io.modelcontextprotocol/tasks'
PAUSE = 0.1


class _Task(Result):
    """What a call is answered. The SDK keeps `inputRequests` for itself here."""

    result_type: Literal['task']
    task_id: str
    status: str
    poll_interval_ms: int | None = None


class _Shown(Result):
    """What tasks/get is answered."""

    result_type: Literal['complete']
    task_id: str
    status: str
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


class _Params(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class _Get(Request[_Params, Literal['tasks/get']]):
    method: Literal['tasks/get'] = 'tasks/get'
    name_param = 'taskId'


class _Update(Request[_Params, Literal['tasks/update']]):
    method: Literal['tasks/update'] = 'tasks/update'
    name_param = 'taskId'


class _Cancel(Request[_Params, Literal['tasks/cancel']]):
    method: Literal['tasks/cancel'] = 'tasks/cancel'
    name_param = 'taskId'


class _Tasks(ClientExtension):
    """Polls a task to its end, and answers what it asks."""

    identifier = TASKS

    def __init__(self, answer=None):
        self.answer = answer
        self.created, self.statuses, self.questions = [], [], []

    def claims(self):
        return (ResultClaim(result_type='task', model=_Task, resolve=self.resolve),)

    async def resolve(self, created: _Task, context: ClaimContext) -> CallToolResult:
        self.created.append(created)
        while True:
            shown = await context.session.send_request(_Get(params=_Params(task_id=created.task_id)), _Shown)
            if not self.statuses or self.statuses[-1] != shown.status:
                self.statuses.append(shown.status)
            if shown.status == 'input_required' and self.answer:
                responses = {}
                for name, request in shown.input_requests.items():
                    self.questions.append(request['params']['message'])
                    responses[name] = {'action': 'accept', 'content': self.answer}
                params = _Params(task_id=created.task_id, input_responses=responses)
                await context.session.send_request(_Update(params=params), Result)
            elif shown.status in ('completed', 'cancelled', 'failed'):
                return CallToolResult.model_validate(shown.result or {'content': [], 'isError': True})
            await anyio.sleep(PAUSE)


async def a_call_is_answered_with_a_task_that_is_polled(stage):
    tasks = _Tasks()
    async with stage.client(extensions=[tasks]) as client:
        assert TASKS in client.server_capabilities.extensions, client.server_capabilities
        result = await client.call_tool('ask_agent', {'message': 'slow 1 polled'})
    assert words(result) == 'echo: slow 1 polled', result
    assert tasks.statuses[-1] == 'completed' and tasks.created[0].status == 'working', tasks.statuses
    assert tasks.created[0].poll_interval_ms, tasks.created


async def a_failed_task_is_completed_with_a_result_that_is_an_error(stage):
    tasks = _Tasks()
    async with stage.client(extensions=[tasks]) as client:
        result = await client.call_tool('ask_agent', {'message': 'fail on purpose'})
    assert result.is_error and 'on purpose' in words(result) and tasks.statuses[-1] == 'completed', result


async def a_question_is_an_input_request_of_the_task(stage):
    tasks = _Tasks({'answer': 'Monday'})
    # The capability is declared by the callback; the extension asks the user itself.
    async with stage.client(extensions=[tasks], elicit=User('cancel')) as client:
        result = await client.call_tool('ask_agent', {'message': 'ask which day?'})
    assert words(result) == 'echo: Monday' and set(tasks.questions) == {'which day?'}, (result, tasks.questions)


async def a_permission_is_an_input_request_of_the_task(stage):
    tasks = _Tasks({'choice': 'reject'})
    async with stage.client(extensions=[tasks], elicit=User('cancel')) as client:
        result = await client.call_tool('ask_asks', {'message': 'clean up'})
    assert 'It was not allowed.' in words(result), result


async def a_task_is_cancelled(stage):
    async with stage.client() as plain:
        task = await begin(plain, 'slow 50 never')
    async with stage.client(extensions=[_Tasks()]) as client:
        await client.session.send_request(_Cancel(params=_Params(task_id=task)), Result)
        with anyio.fail_after(PATIENCE):
            while (shown := await client.session.send_request(_Get(params=_Params(task_id=task)), _Shown)).status != 'cancelled':
                await anyio.sleep(PAUSE)
        assert shown.task_id == task, shown


async def the_extension_must_be_declared(stage):
    async with stage.client() as client:
        task = await begin(client, 'hello')
        error = await failure(client.session.send_request(_Get(params=_Params(task_id=task)), _Shown))
    assert isinstance(error, MCPError) and error.code == -32021, repr(error)


async def an_unknown_task_is_refused(stage):
    async with stage.client(extensions=[_Tasks()]) as client:
        for request in (_Get, _Cancel, _Update):
            error = await failure(client.session.send_request(request(params=_Params(task_id='no-such-task')), Result))
            assert isinstance(error, MCPError) and error.code == -32602, repr(error)

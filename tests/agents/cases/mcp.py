"""The program as an MCP host: its model calls the tools of Sabir, over each transport, and reads what an agent answers."""

import json

from expect import equal, holds

# It runs alone, so any one mode will do.
MODES = ('duplex',)
ANSWER = 'echo: hello from the fake model'


def an_agent_is_asked_over_http(stage):
    stage.serve_demo()
    _asks(stage, stage.mcp_http())
    _is_stored(stage, ANSWER)


def an_agent_is_asked_through_sabir_mcp(stage):
    stage.serve_demo()
    _asks(stage, stage.mcp_stdio())
    _is_stored(stage, ANSWER)


def an_agent_is_asked_where_no_server_runs(stage):
    stage.configure_demo()
    _asks(stage, stage.mcp_stdio())
    # The task is in the store when the program and its server have gone.
    stage.nothing_is_left()
    stage.serve_demo()
    _is_stored(stage, ANSWER)


def a_program_asks_another_of_its_kind_where_no_server_runs(stage):
    stage.configure()
    said = _runs(stage, stage.mcp_stdio(), 'scenario:agent please')
    holds('the answer of the agent', 'This reply comes in several deltas.' in said, said[-1500:])
    stage.nothing_is_left()
    stage.serve()
    _is_stored(stage, 'This reply comes in several deltas.')


def a_question_is_answered_by_the_next_call(stage):
    for server in ('http', 'stdio'):
        stage.serve_demo()
        said = _runs(stage, stage.mcp_http() if server == 'http' else stage.mcp_stdio(), 'scenario:question please')
        holds(f'the answer of the agent, over {server}', 'echo: Monday' in said, said[-1500:])
        stage.stop_server()


def _hosts(program, _mode):
    return program.as_host is not None


for _case in (
    an_agent_is_asked_over_http,
    an_agent_is_asked_through_sabir_mcp,
    an_agent_is_asked_where_no_server_runs,
    a_program_asks_another_of_its_kind_where_no_server_runs,
    a_question_is_answered_by_the_next_call,
):
    _case.only = _hosts


def _asks(stage, server):
    said = _runs(stage, server, 'scenario:agent please')
    holds('the answer of the agent', ANSWER in said, said[-1500:])
    # The model was shown it, too.
    holds('what the model has read', ANSWER in stage.requests(), stage.requests()[-1500:])


def _runs(stage, server, prompt):
    ended = stage.run_alone(*stage.program.as_host(server), prompt)
    equal(f'exit code, with {ended.stdout[-1500:]!r}', ended.returncode, 0)
    return ended.stdout


def _is_stored(stage, answer):
    tasks = stage.client.list()
    equal('tasks', len(tasks), 1)
    equal('state', tasks[0].state, 'completed')
    holds('what was answered', answer in json.dumps(stage.client.get(tasks[0].id).value), tasks[0].value)

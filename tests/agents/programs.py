"""The programs: how each is pointed at the stand-in for a model, how it runs alone, and in what it differs.

Settings are what a user of the program would write: environment variables and files below the home folder.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field


def _claude_code_as_host(server):
    kind = {'type': 'http'} if 'url' in server else {}
    config = json.dumps({'mcpServers': {'sabir': kind | server}})
    return ('-p', '--output-format', 'stream-json', '--verbose', '--strict-mcp-config', '--mcp-config', config,
            '--allowedTools', 'mcp__sabir', '--')


def _codex_as_host(server):
    settings = [f'mcp_servers.sabir.{name}={json.dumps(value)}' for name, value in server.items()]
    settings.append('mcp_servers.sabir.default_tools_approval_mode="approve"')
    return ('exec', '--json', '--skip-git-repo-check', *(word for setting in settings for word in ('-c', setting)))


@dataclass(frozen=True)
class Program:
    name: str  # the kind in `sabir.toml`, and the folder that it is installed in
    binary: str
    modes: tuple[str, ...]
    environment: Callable[[str], dict[str, str]]  # of the model's URL
    alone: tuple[str, ...]  # arguments of a plain run, before the prompt
    files: Callable[[str], dict[str, str]] = field(default=lambda url: {})  # path below HOME to text
    model: str | None = None
    # What makes it ask for permission.
    asking: str = 'shell'
    # Whether its question holds what the tool would be called with.
    shows_input: bool = True
    # Whether it says which files it has written.
    names_files: bool = True
    # Settings of a workspace, as path to text, that would touch this file if the program obeyed them.
    hooked: Callable[[str], dict[str, str]] | None = None
    # Arguments of a plain run with this MCP server (`url`, or `command` and `args`), before the prompt.
    as_host: Callable[[dict], tuple[str, ...]] | None = None
    # Whether it is ended while nobody answers its question, and resumed on the answer.
    sleeps: bool = False


CODEX_CONFIG = """\
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
"""

GEMINI_SETTINGS = {
    'privacy': {'usageStatisticsEnabled': False},
    'telemetry': {'enabled': False},
    'general': {'enableAutoUpdate': False},
    'security': {'auth': {'selectedType': 'gemini-api-key'}, 'folderTrust': {'enabled': False}},
}

PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name='claude-code',
            binary='claude',
            modes=('duplex', 'oneshot'),
            environment=lambda url: {
                'ANTHROPIC_BASE_URL': url,
                'ANTHROPIC_API_KEY': 'dummy',
                'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1',
                'DISABLE_AUTOUPDATER': '1',
            },
            alone=('-p', '--output-format', 'stream-json', '--verbose', '--'),
            hooked=lambda mark: {
                '.claude/settings.json': json.dumps(
                    {
                        'permissions': {'allow': ['Bash', 'Write'], 'deny': ['NotebookEdit']},
                        'hooks': {'UserPromptSubmit': [{'hooks': [{'type': 'command', 'command': f'touch {mark}'}]}]},
                    }
                ),
                '.claude/settings.local.json': json.dumps(
                    {'permissions': {'allow': ['Bash']}, 'enableAllProjectMcpServers': True}
                ),
                '.mcp.json': json.dumps({'mcpServers': {'own': {'command': 'touch', 'args': [mark]}}}),
            },
            as_host=_claude_code_as_host,
            sleeps=True,
        ),
        Program(
            name='codex',
            binary='codex',
            modes=('duplex', 'oneshot'),
            environment=lambda url: {'FAKE_KEY': 'dummy'},
            files=lambda url: {'.codex/config.toml': CODEX_CONFIG.format(url=url)},
            alone=('exec', '--json', '--skip-git-repo-check'),
            hooked=lambda mark: {
                '.codex/config.toml': f'[mcp_servers.own]\ncommand = "touch"\nargs = [{json.dumps(mark)}]\n'
            },
            # It is offered no tool for writing and uses the shell.
            names_files=False,
            as_host=_codex_as_host,
        ),
        Program(
            name='gemini',
            binary='gemini',
            modes=('acp',),
            environment=lambda url: {
                'GOOGLE_GEMINI_BASE_URL': url,
                'GEMINI_API_KEY': 'dummy',
                'GEMINI_CLI_NO_RELAUNCH': 'true',
            },
            files=lambda url: {'.gemini/settings.json': json.dumps(GEMINI_SETTINGS)},
            alone=('-o', 'stream-json', '-m', 'gemini-2.5-flash', '-p'),
            # Without one it asks the model which model to use.
            model='gemini-2.5-flash',
            # Its question has the command as its title, and no input beside it.
            shows_input=False,
        ),
        Program(
            name='goose',
            binary='goose',
            modes=('acp',),
            environment=lambda url: {
                'GOOSE_PROVIDER': 'openai',
                'OPENAI_HOST': url,
                'OPENAI_API_KEY': 'dummy',
                'GOOSE_MODEL': 'fake-model',
                'GOOSE_DISABLE_KEYRING': '1',
                # By default it asks nobody.
                'GOOSE_MODE': 'approve',
            },
            alone=('run', '--output-format', 'stream-json', '-t'),
            # What its tool for writing answers names no file.
            names_files=False,
        ),
    )
}

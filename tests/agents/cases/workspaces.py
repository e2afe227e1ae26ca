"""What a workspace says about the program: it comes with its content, which is nobody's word."""

import json

from expect import equal, holds

MODES = ('duplex', 'oneshot')


def hooks_servers_and_allow_rules_of_the_workspace_do_not_count(stage):
    mark = stage.folder / 'hooked'
    stage.put(stage.program.hooked(str(mark)))
    before = stage.permissions()
    stage.serve()
    for agent in ('all', 'none') if stage.mode == 'oneshot' else ('all', 'ask', 'none'):
        task = stage.client.send(agent, 'scenario:text please')
        equal(f'state of {agent}, with {task.says!r}', task.state, 'completed')
        holds(f'nothing of the workspace was started by {agent}', not mark.exists(), mark)
    task = stage.client.send('none', 'scenario:shell please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('no tool ran', not stage.tool_ran.exists(), task.value)
    holds('nothing of the workspace was started', not mark.exists(), mark)
    equal('what the program keeps of permissions', stage.permissions(), before)


hooks_servers_and_allow_rules_of_the_workspace_do_not_count.only = lambda program, mode: program.hooked


def what_the_workspace_and_the_user_forbid_stays_forbidden(stage):
    stage.put({'.claude/settings.json': json.dumps({'permissions': {'deny': ['Bash', 'Edit(/hello.txt)']}})})
    users = stage.folder / 'hook-of-the-user'
    hook = {'UserPromptSubmit': [{'hooks': [{'type': 'command', 'command': f'touch {users}'}]}]}
    stage.put({'.claude/settings.json': json.dumps({'hooks': hook})}, stage.home)
    stage.serve()
    task = stage.client.send('all', 'scenario:multi please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('no tool ran', not stage.tool_ran.exists(), task.value)
    holds('no file was written', not (stage.workspace / 'hello.txt').exists(), task.value)
    holds('the hook of the user ran', users.exists(), users)


what_the_workspace_and_the_user_forbid_stays_forbidden.only = lambda program, mode: program.name == 'claude-code'


def instructions_of_the_workspace_reach_the_model(stage):
    stage.put({'CLAUDE.md': 'mark-of-the-instructions', 'AGENTS.md': 'mark-of-the-instructions'})
    stage.serve()
    task = stage.client.send('none', 'scenario:text please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    holds('the instructions', 'mark-of-the-instructions' in stage.requests(), task.value)


# `codex exec` has no place for them.
instructions_of_the_workspace_reach_the_model.only = lambda program, mode: (program.name, mode) != ('codex', 'oneshot')

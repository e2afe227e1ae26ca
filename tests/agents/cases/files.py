"""Files that a program writes."""

from expect import equal

MODES = ('duplex', 'acp')


def a_file_that_is_written_comes_back(stage):
    stage.serve()
    task = stage.client.send('all', 'scenario:write please')
    equal(f'state, with {task.says!r}', task.state, 'completed')
    written = (stage.workspace / 'hello.txt').read_text()
    equal('what was written', written, 'hello from the fake model\n')
    named = [artifact for artifact in task.artifacts if artifact.get('name') == 'hello.txt']
    if stage.program.names_files:
        equal('the file as an artifact', [part.get('text') for artifact in named for part in artifact['parts']], [written])
    else:
        equal('artifacts of files', named, [])

"""Tools that need no permission."""

from expect import equal, holds

MODES = ('duplex', 'acp', 'oneshot')


def a_tool_is_told_and_used(stage):
    stage.serve()
    frames = list(stage.client.stream('all', 'scenario:shell please'))
    said = [frame.says for frame in frames if frame.says]
    equal(f'last state, with {said!r}', [frame.state for frame in frames if frame.state][-1], 'completed')
    holds('a tool in what it said', any(text.startswith('Using tool: ') for text in said), said)
    equal('what the tool wrote', _read(stage.tool_ran), 'fake-tool-ran\n')
    # The model quotes what the tool printed, so it has seen it.
    answer = stage.client.get(frames[0].task).answer
    holds('answer', 'The tool said:' in answer and 'fake-tool-ran' in answer, answer)


def _read(file):
    return file.read_text() if file.exists() else None

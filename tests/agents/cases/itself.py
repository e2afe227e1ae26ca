"""The program with no server between: when this fails, the rest says nothing about Sabir."""

from expect import equal, holds

MODES = ('duplex', 'acp')


def the_program_itself_answers(stage):
    ended = stage.run_alone(*stage.program.alone, 'scenario:text please')
    equal(f'exit code, with {ended.stdout!r}', ended.returncode, 0)
    # The last word of the model's answer.
    holds('output', 'deltas.' in ended.stdout, ended.stdout)

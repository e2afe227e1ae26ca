"""`sabir agents --check`: whether a program answers, and what is wrong if it does not."""

from expect import equal, holds

MODES = ('duplex', 'acp')


def a_program_that_answers_passes_the_check(stage):
    code, rows = stage.check()
    equal(f'exit code, with {rows}', code, 0)
    agents = [(row['id'], row['ok'], row['asks']) for row in rows]
    equal('agents', agents, [('all', True, False), ('none', True, False), ('ask', True, True)])
    holds('answer', 'deltas.' in rows[0]['answer'], rows[0])


def a_program_that_is_not_logged_in_is_told_so(stage):
    code, rows = stage.check('all', is_logged_in=False)
    equal(f'exit code, with {rows}', code, 1)
    # With no network there is no provider that could refuse a program without a key.
    known = ('not logged in', 'not set up: it has no provider of models', 'no network')
    holds('trouble', rows[0]['trouble'] in known, rows)
    holds('remedy', rows[0]['remedy'], rows)

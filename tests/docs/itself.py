"""The suite itself: a page that is wrong has to be found out."""

import markdown
from page import Page

# A page, and what must be said of it; nothing is said of a page that is right.
ROWS = [
    ('```sh\ntrue\n```', None),
    ('```sh\nfalse\ntrue\n```', 'exit code 1, not 0'),
    ('```sh exit=1\nfalse\n```', None),
    ('```sh\nfalse | cat\n```', 'exit code 1, not 0'),
    ('```sh\ncurl -s http://127.0.0.1:41242/\n```', 'exit code 7, not 0'),
    ('```sh\nsabir serve --banana\n```', 'it ended and printed'),
    ('```sh no-run="needs the moon"\nfalse\n```', None),
    ('```console\n$ echo one two three\none ... three\n```', None),
    ('```console\n$ echo one two three\none\n```', 'the page shows: one'),
    ('```console\n$ echo one\n```', 'the page shows:'),
    ('```console\n$ echo one \\\n    two\none two\n```', None),
    ('```sh\nname=value; cd /tmp\n```\n```console\n$ echo $name $PWD\nvalue /tmp\n```', None),
    ('```sh\nsabir serve\n```\n```console\n$ curl -s http://127.0.0.1:41242/healthz\n{"status":"ok"}\n```', None),
    ('```sh\nsabir serve\n```\n```sh\ncurl -s http://127.0.0.1:41242/tasks/none\n```', 'exit code 22, not 0'),
    ('```python file=a.py\nprint("saved")\n```\n```console\n$ python a.py\nsaved\n```', None),
]


def check(stage):
    for number, (text, expected) in enumerate(ROWS):
        complaint = None
        try:
            Page(stage, f'row {number}', markdown.blocks(text)).run()
        except AssertionError as error:
            complaint = str(error)
        is_right = complaint is None if expected is None else complaint is not None and expected in complaint
        assert is_right, f'of {text!r} it said {complaint!r}, not {expected!r}'

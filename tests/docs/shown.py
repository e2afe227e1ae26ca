"""Whether a command printed what its page shows."""

import re

# Colors and the title of a window.
CONTROL = re.compile(r'\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\r')


def plain(text):
    return CONTROL.sub('', text)


def matches(shown, printed, is_whole=True):
    """`...` in what is shown stands for anything. White space does not count: pages break long lines."""
    pieces = [re.escape(_dense(piece)) for piece in re.split(r'\.\.\.|…', shown)]
    pattern = re.compile('.*?'.join(pieces), re.DOTALL)
    text = _dense(plain(printed))
    return bool(pattern.fullmatch(text) if is_whole else pattern.match(text))


def _dense(text):
    return ''.join(text.split())

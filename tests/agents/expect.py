"""What cases say when they do not get what they want."""


def equal(what, got, wanted):
    assert got == wanted, f'{what}: wanted {wanted!r}, got {got!r}'


def holds(what, condition, seen):
    assert condition, f'{what}: got {seen!r}'

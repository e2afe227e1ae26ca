"""The fenced blocks of a Markdown page: language, options, lines, and where the block begins."""

import re
from dataclasses import dataclass, field

RUN = ('sh', 'console')
# Options behind the language: file=NAME, no-run="why", exit=1.
OPTION = re.compile(r'([a-z-]+)=(?:"([^"]*)"|(\S+))')


@dataclass
class Block:
    language: str
    options: dict
    line: int
    lines: list = field(default_factory=list)

    @property
    def text(self):
        return '\n'.join(self.lines) + '\n'

    def is_run(self):
        return 'no-run' not in self.options and (self.language in RUN or 'file' in self.options)


def pages(root):
    """README.md and every page below docs/, in a fixed order."""
    return [root / 'README.md', *sorted((root / 'docs').rglob('*.md'))]


def blocks(text):
    found = []
    inside = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith('```'):
            if inside is not None:
                found.append(inside)
                inside = None
            else:
                language, _, rest = line[3:].strip().partition(' ')
                options = {name: quoted or plain for name, quoted, plain in OPTION.findall(rest)}
                inside = Block(language, options, number)
        elif inside is not None:
            inside.lines.append(line)
    assert inside is None, f'the block of line {inside and inside.line} has no end'
    return found


def commands(block):
    """What a `console` block types, each with the output that is shown below it."""
    found = []
    for line in block.lines:
        if line.startswith('$ '):
            found.append((line[2:], []))
        elif found and not found[-1][1] and found[-1][0].endswith('\\'):
            found[-1] = (f'{found[-1][0]}\n{line}', [])
        else:
            assert found, f'line {block.line}: a console block begins with a command, `$ ...`'
            found[-1][1].append(line)
    return [(command, '\n'.join(shown)) for command, shown in found]

"""Real coding programs behind a real Sabir: `suite.py --sabir FILE --programs FOLDER --program NAME`.

The programs run with no model and no network: a scripted stand-in on the loopback interface answers them. Every case
has a server, a home and a workspace of its own.
"""

import sys

# The cases live in the source tree; running them leaves nothing behind.
sys.dont_write_bytecode = True

import report
from cases import (
    answers, approvals, cancel, check, delegation, files, itself, lasting, mcp, outside, prompts, resume, tools, warm,
    workspaces
)

report.main(
    itself, check, answers, tools, files, approvals, lasting, outside, prompts, workspaces, cancel, delegation, resume,
    warm, mcp
)

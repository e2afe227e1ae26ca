"""The cases about `sabir check`: what it finds on the servers of the SDKs, and that a front before one breaks no rule.

The SDKs break rules, and each of those is named here. A rule that is missing in a report, or that is too much, is a
fault of the check: the versions of the SDKs are fixed.
"""

import collections

from probes import equal

# Words of the agent by which rules about running and waiting tasks can be tried.
WORDS = ['--slow', 'slow 3', '--ask', 'ask which color']

# By SDK and binding. The levels are those of the report; what breaks a MUST is a warning where an SDK does so.
BROKEN = {
    ('python-1.3.0', 'jsonrpc'): {'warning': ['card.caching']},
    ('python-1.3.0', 'http_json'): {'warning': ['card.caching']},
    ('python-0.3.26', 'jsonrpc'): {
        'warning': ['rpc.invalid-request', 'stream.terminal'],
        'note': ['capability.push', 'rpc.id'],
    },
    ('python-0.3.26', 'http_json'): {'warning': ['errors.invalid-params', 'errors.parse', 'stream.terminal']},
    ('python-0.2.16', 'jsonrpc'): {
        'warning': [
            'errors.cancel-finished',
            'history.limit',
            'rpc.invalid-request',
            'rpc.unknown-method',
            'send.immediate',
        ],
        'note': ['capability.push', 'errors.invalid-params', 'rpc.id'],
    },
    ('js-1.3.0', 'jsonrpc'): {
        'warning': ['errors.invalid-params', 'version.patch'],
        'note': ['rpc.invalid-request'],
    },
    ('js-1.3.0', 'http_json'): {'warning': ['errors.invalid-params', 'version.patch']},
    ('js-0.3.14', 'jsonrpc'): {'warning': ['errors.invalid-params']},
    ('js-0.3.14', 'http_json'): {'warning': ['subscribe.unknown']},
}

# Rules that are tried only if the words of the agent work, in every version and binding.
NEED_WORDS = {'cancel.running', 'task.continued'}

# What a front is checked in, and how many interfaces that is: the card names those of 1.0 and 0.3, gRPC among them.
CHECKED = [([], 8), (['--a2a-version', '0.2'], 3), (['--a2a-version', '0.1'], 3)]


def a_server_of_an_sdk_has_no_errors(sabir, sdk, binding):
    report = check(sabir)
    broken = BROKEN[sdk, binding]
    interfaces = [(one['version'], one['binding']) for one in report['interfaces']]
    equal('the interfaces', interfaces, [(sabir.names['version'], sabir.names['binding'])])
    equal('what is broken', found(report), broken)
    # A server that answers only when the agent is done never shows a task that runs.
    equal('what is not tried', untried(report), {'cancel.running'} if 'send.immediate' in broken['warning'] else set())


def a_front_keeps_every_rule_in_every_version(sabir):
    for flags, interfaces in CHECKED:
        report = check(sabir, *flags)
        equal('the interfaces', len(report['interfaces']), interfaces)
        equal('what is broken', found(report), {})
        equal('what is not tried', untried(report), set())


def check(sabir, *flags):
    """The report; the exit code 0 says that there are no errors."""
    [report] = sabir.run(['check', sabir.names['url'], *WORDS, *flags])
    equal('the agent', report['agent'], 'Words')
    return report


def found(report):
    """The rules that are broken, by level."""
    rules = collections.defaultdict(list)
    for finding in report['findings']:
        rules[finding['level']].append(finding['rule'])
    return {level: sorted(broken) for level, broken in rules.items()}


def untried(report):
    return NEED_WORDS & {entry['rule'] for entry in report['skipped']}

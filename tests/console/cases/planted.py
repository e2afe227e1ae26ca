"""Script in every field that an agent or a caller can write. Nothing of it may run, load or be clickable as script."""

import base64
import json
import re
from urllib.parse import quote

from playwright.sync_api import expect

from stage import ready, settle

SCRIPT = '<img src=x onerror="window.owned=1"><script>window.owned=1</script><svg onload="window.owned=1">'
MARKDOWN = (
    f'{SCRIPT}\n\n[click](javascript:window.owned=1) [c2](JaVaScRiPt&#58;window.owned=1) [c3]( javascript:window.owned=1) '
    '![p](https://example.com/pixel.png) <https://example.com/a> [data](data:text/html,<script>window.owned=1</script>)\n\n'
    f'`{SCRIPT}`\n\n```html\n{SCRIPT}\n```\n\n| a | b |\n|---|---|\n| {SCRIPT} | x |\n\n# {SCRIPT}\n\n> {SCRIPT}\n\n- {SCRIPT}\n'
)
OPTIONS = [{'optionId': 'allow', 'name': SCRIPT, 'kind': 'allow_once'}, {'optionId': SCRIPT, 'name': f'No {SCRIPT}', 'kind': 'reject_once'}]
SAID = {'text': MARKDOWN, 'title': SCRIPT, 'input': {SCRIPT: SCRIPT, 'list': [SCRIPT]}, 'result': SCRIPT, 'options': OPTIONS}
SETTINGS = '[push]\nallow_hosts = ["127.0.0.1"]\n'
# Opens everything that is folded, and says how much that is.
UNFOLD = '() => [...document.querySelectorAll("details:not([open])")].map((details) => { details.open = true; }).length'


def script_in_every_field_stays_text(stage):
    server = stage.server(said=SAID, settings=SETTINGS)
    ids = [_message(server), _own_ids(server), *_questions(server)]
    svg = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"><script>parent.owned=1</script></svg>').decode()
    html = base64.b64encode(SCRIPT.encode()).decode()
    files = [
        {'raw': svg, 'mediaType': 'image/svg+xml', 'filename': '"><script>window.owned=1</script>.svg'},
        {'raw': html, 'mediaType': 'text/html', 'filename': '../../evil.html'},
        {'url': 'javascript:window.owned=1', 'filename': SCRIPT, 'mediaType': SCRIPT},
        {'data': {SCRIPT: SCRIPT}, 'metadata': {SCRIPT: SCRIPT}},
    ]
    ids.append(server.send('', parts=[{'text': 'files'}, *files])['id'])
    ids.append(server.send(f'fail {MARKDOWN}')['id'])
    ids.append(server.send(f'tool {SCRIPT}')['id'])
    for path in ('tasks', 'waiting', 'agents', 'agents/asks', 'deliveries', 'system', *(f'tasks/{task}' for task in ids)):
        page = stage.page(server, f'/console/{path}')
        settle(page)
        if page.evaluate(UNFOLD):
            settle(page)
        _check(page, path)
    page = stage.page(server, f'/console/tasks/{ids[0]}?raw=1')
    expect(page.locator('[data-frame]').first).to_be_visible()
    _check(page, 'frames')


def script_in_names_of_answers_and_results_of_tools_stays_text(stage):
    server = stage.server(said=SAID)
    task = server.send('please', agent='asks')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    allow = page.locator('.question .primary')
    expect(allow).to_have_text(SCRIPT)
    expect(page.locator('.question dt').first).to_have_text(SCRIPT)
    allow.click()
    server.until(task, 'COMPLETED')
    tool = page.locator('.event.tool')
    expect(tool).to_contain_text('completed')
    settle(page)
    page.evaluate(UNFOLD)
    # What it was given, and what it gave.
    expect(tool.locator('pre').first).to_contain_text('window.owned=1')
    expect(tool.locator('pre').last).to_have_text(SCRIPT)
    _check(page, 'a tool and its result')


def script_in_names_of_artifacts_and_in_cards_stays_text(stage):
    """No agent of this server writes them, so they are planted on the way."""
    server = stage.server()
    task = server.send('file')['id']
    page = stage.page(server)

    def named(route):
        answer = route.fetch()
        planted = json.dumps(SCRIPT)
        text = re.sub(r'"(artifact":|artifacts":\[)\{', lambda found: f'{found[0]}"description":{planted},', answer.text())
        route.fulfill(response=answer, body=re.sub(r'"name":"[^"]*"', lambda _: f'"name":{planted}', text))

    page.route(re.compile(f'^{server.url}/tasks/{task}(:subscribe)?$'), named)
    page.goto(f'{server.url}/console/tasks/{task}')
    expect(page.locator('.event.artifact .name').first).to_have_text(SCRIPT)
    page.locator('.facts .artifacts button', has_text='window.owned').first.click()
    expect(page.get_by_role('dialog').locator('h2')).to_have_text(SCRIPT)
    _check(page, 'an artifact')

    def planted(value):
        if isinstance(value, str):
            return SCRIPT
        if isinstance(value, list):
            return [planted(one) for one in value]
        return {name: planted(one) for name, one in value.items()} if isinstance(value, dict) else value

    def carded(route):
        answer = route.fetch()
        card = planted(answer.json())
        card['documentationUrl'] = card['iconUrl'] = 'javascript:window.owned=1'
        card['provider'] = {'organization': SCRIPT, 'url': 'javascript:window.owned=1'}
        card['skills'] = [{name: SCRIPT for name in ('id', 'name', 'description')} | {'tags': [SCRIPT], 'examples': [SCRIPT]}]
        route.fulfill(response=answer, json=card)

    page.route('**/agent-card.json', carded)
    for path in ('agents', 'agents/demo', 'system'):
        page.goto(f'{server.url}/console/{path}')
        if path != 'system':
            expect(page.locator('#main')).to_contain_text('window.owned=1')
        settle(page)
        page.evaluate(UNFOLD)
        _check(page, f'a card on {path}')


def letters_that_nobody_sees_are_shown_where_one_approves(stage):
    """An override turns the order of what is read, and tag letters take no room: a command would look like another one."""
    command = 'rm -rf /ho\u200cme \u202e# \U000e0061\U000e0062'
    shown = 'rm -rf /hoU+200Cme U+202E# U+E0061 U+E0062'
    options = [{'optionId': 'allow', 'name': 'All\u200bow', 'kind': 'allow_once'}, {'optionId': 'reject', 'name': 'Reject', 'kind': 'reject_once'}]
    said = {**SAID, 'text': 'do\u202ene', 'title': f'run\u2066 {command}', 'input': {'comm\u00adand': command, 'list': [command]}, 'options': options}
    server = stage.server(said=said)
    task = server.send('pl\u202eease, \u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469\u200d\U0001f467', agent='asks')['id']
    for path in ('waiting', f'tasks/{task}'):
        page = stage.page(server, f'/console/{path}')
        card = page.locator('.question')
        expect(card).to_contain_text(f'U+2066 {shown}')
        expect(card.locator('dt').first).to_have_text('commU+00ADand')
        expect(card.locator('dd').first).to_have_text(shown)
        expect(card.locator('dd').last).to_contain_text(shown)
        expect(card.locator('.choices button').first).to_have_text('AllU+200Bow')
        _check_hidden(page, path)
    # What a script or an emoji needs is no trick.
    page = stage.page(server, '/console/tasks')
    row = page.locator('.rows.tasks')
    expect(row).to_contain_text('\u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469\u200d\U0001f467')
    expect(row).to_contain_text('U+202E')
    _check_hidden(page, 'tasks')
    page = stage.page(server, f'/console/tasks/{task}')
    ready(page.locator('.question'))
    page.keyboard.press('y')
    server.until(task, 'COMPLETED')
    expect(page.locator('.timeline')).to_contain_text('doU+202Ene')
    settle(page)
    page.evaluate(UNFOLD)
    _check_hidden(page, 'the task after the answer')


def _check_hidden(page, where):
    hidden = r'[\u202e\u2066\u200b\u00ad\u{e0061}]'
    found = page.evaluate(
        """(hidden) => [...document.querySelectorAll('*')].flatMap((element) => [
            ...[...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
            ...['title', 'alt', 'aria-label', 'placeholder'].map((name) => element.getAttribute(name) ?? ''),
        ]).concat(document.title).filter((text) => new RegExp(hidden, 'u').test(text))""",
        hidden,
    )
    assert not found, f'{where}: {found[:3]!r}'


def markdown_links_are_safe_and_lead_out(stage):
    server = stage.server(said={**SAID, 'text': '[a](https://example.com/a) [m](mailto:a@example.com) [f](file:///etc/passwd)'})
    task = server.send('please', agent='asks')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    ready(page.locator('.question'))
    page.keyboard.press('y')
    link = page.get_by_role('link', name='a', exact=True).first
    expect(link).to_have_attribute('href', 'https://example.com/a')
    rel = link.get_attribute('rel')
    assert 'noopener' in rel and 'noreferrer' in rel, rel
    expect(page.get_by_role('link', name='m', exact=True).first).to_have_attribute('href', 'mailto:a@example.com')
    expect(page.get_by_role('link', name='f', exact=True)).to_have_count(0)


def a_download_of_html_does_not_open(stage):
    server = stage.server()
    html = base64.b64encode(SCRIPT.encode()).decode()
    task = server.send('', parts=[{'raw': html, 'mediaType': 'text/html', 'filename': '../../evil.html'}])['id']
    page = stage.page(server, f'/console/tasks/{task}')
    with page.expect_download() as downloading:
        page.get_by_role('button', name='Download').first.click()
    assert '/' not in downloading.value.suggested_filename, downloading.value.suggested_filename
    assert page.url.endswith(task), page.url
    _check(page, 'download')


def _message(server):
    metadata = {SCRIPT: SCRIPT}
    return server.send(MARKDOWN, metadata=metadata, extensions=[SCRIPT])['id']


def _own_ids(server):
    """Callers of 0.1 choose the ids of their tasks."""
    own = 'x"><img src=x onerror=window.owned=1>'
    body = {'id': own, 'sessionId': SCRIPT, 'message': {'role': 'user', 'parts': [{'type': 'text', 'text': SCRIPT}]}}
    answer = server.call('/', {'jsonrpc': '2.0', 'id': 1, 'method': 'tasks/send', 'params': body}, version='0.1')
    assert 'result' in answer, answer
    return quote(own, safe='')


def _questions(server):
    asked = server.send('please', agent='asks')['id']
    answered = server.send('please', agent='asks')['id']
    data = {'approved': True, 'reason': ''}
    server.call(
        '/message:send',
        {'message': {'messageId': 'a', 'role': 'ROLE_USER', 'taskId': answered, 'parts': [{'data': data}]}},
    )
    hook = {'url': 'http://127.0.0.1:9/%3Cscript%3E', 'id': SCRIPT}
    message = {'messageId': 'h', 'role': 'ROLE_USER', 'parts': [{'text': f'ask {MARKDOWN}'}]}
    body = {'message': message, 'configuration': {'taskPushNotificationConfig': hook}}
    return [asked, answered, server.call('/message:send', body)['task']['id']]


def _check(page, where):
    assert page.evaluate('window.owned') is None, f'{where}: script has run'
    found = page.evaluate(
        '''() => [
            ...[...document.querySelectorAll('#main script, #main iframe, #main object, #main embed, #main svg[onload], #main style, #main base, #main form[action], dialog script, dialog iframe')],
            ...[...document.querySelectorAll('*')].filter((element) => [...element.attributes].some(({ name }) => name.startsWith('on'))),
            ...[...document.querySelectorAll('a[href]')].filter((link) => !/^(https?|mailto|blob):/.test(link.protocol)),
            ...[...document.querySelectorAll('img')].filter((picture) => !picture.src.startsWith('data:image/')),
        ].map((element) => element.outerHTML.slice(0, 200))'''
    )
    assert not found, f'{where}: {found[:3]}'

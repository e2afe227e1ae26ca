"""Script in every field that an agent or a caller can write. Nothing of it may run, load or be clickable as script."""

import base64
from urllib.parse import quote

from playwright.sync_api import expect

from stage import settle

SCRIPT = '<img src=x onerror="window.owned=1"><script>window.owned=1</script><svg onload="window.owned=1">'
MARKDOWN = (
    f'{SCRIPT}\n\n[click](javascript:window.owned=1) [c2](JaVaScRiPt&#58;window.owned=1) [c3]( javascript:window.owned=1) '
    '![p](https://example.com/pixel.png) <https://example.com/a> [data](data:text/html,<script>window.owned=1</script>)\n\n'
    f'`{SCRIPT}`\n\n```html\n{SCRIPT}\n```\n\n| a | b |\n|---|---|\n| {SCRIPT} | x |\n\n# {SCRIPT}\n\n> {SCRIPT}\n\n- {SCRIPT}\n'
)
SAID = {'text': MARKDOWN, 'title': SCRIPT, 'input': {SCRIPT: SCRIPT, 'list': [SCRIPT]}}
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


def markdown_links_are_safe_and_lead_out(stage):
    server = stage.server(said={**SAID, 'text': '[a](https://example.com/a) [m](mailto:a@example.com) [f](file:///etc/passwd)'})
    task = server.send('please', agent='asks')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.locator('.question')).to_be_visible()
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

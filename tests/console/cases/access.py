"""Who sees what: tokens, and what a page may do."""

import hashlib
import re
import urllib.request

from playwright.sync_api import expect

from stage import settle, until

BOSS, ALICE = 'sabir_boss-0123456789abcdef0123456789', 'sabir_alice-0123456789abcdef012345678'
BOB = 'sabir_bob-0123456789abcdef01234567890'


def _settings():
    tables = [('boss', BOSS, '["admin"]'), ('alice', ALICE, '["run", "read"]')]
    hashed = [(name, hashlib.sha256(token.encode()).hexdigest(), scopes) for name, token, scopes in tables]
    return ''.join(
        f'[[auth.token]]\nsubject = "{name}"\nhash = "sha256:{digest}"\nscopes = {scopes}\n' for name, digest, scopes in hashed
    )


def _log_in(page, token):
    page.locator('dialog.login input').fill(token)
    page.keyboard.press('Enter')


def a_token_is_asked_for_and_kept_for_the_session_only(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    task = server.send('hello')['id']
    page = stage.page(server)
    _log_in(page, 'wrong')
    # It is asked for again, and nothing is shown.
    expect(page.locator('dialog.login')).to_contain_text('does not take this token')
    expect(page.locator('[data-task]')).to_have_count(0)
    _log_in(page, BOSS)
    expect(page.locator(f'[data-task="{task}"]')).to_be_visible()
    assert BOSS not in page.evaluate('JSON.stringify(localStorage)')
    assert BOSS not in page.url
    assert page.context.cookies() == []
    # Another tab of the same profile is another session.
    other = page.context.new_page()
    other.goto(server.url + '/console')
    expect(other.locator('dialog.login input')).to_be_visible()


def a_refusal_that_comes_after_the_login_asks_for_nothing(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    task = server.send('hello')['id']
    page = stage.page(server, '/console/system')
    expect(page.locator('dialog.login')).to_be_visible()
    late = []
    page.route('**/admin/v1/tasks?*', lambda route: route.continue_() if route.request.headers.get('authorization') else late.append(route))
    page.goto(server.url + '/console/tasks')
    until(page, lambda: late, 'a call without a token')
    _log_in(page, BOSS)
    row = page.locator(f'[data-task="{task}"]')
    expect(row).to_be_visible()
    for route in late:
        route.continue_()
    until(page, lambda: not any(route.request in page.unanswered for route in late), 'the late refusals')
    settle(page)
    expect(page.locator('dialog.login')).to_have_count(0)
    # The page goes on looking.
    newer = server.send('hello again')['id']
    expect(page.locator(f'[data-task="{newer}"]')).to_be_visible()
    # A token that is refused later is asked for.
    page.evaluate("sessionStorage.setItem('sabir.token', 'wrong')")
    expect(page.locator('dialog.login')).to_contain_text('does not take this token')


def the_console_works_where_storage_is_forbidden(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    task = server.send('hello')['id']
    page = stage.page(server)
    page.add_init_script(FORBIDDEN)
    page.goto(server.url + '/console')
    _log_in(page, BOSS)
    page.locator(f'[data-task="{task}"]').click()
    expect(page.get_by_text('echo: hello').first).to_be_visible()
    page.get_by_role('button', name='Theme').click()
    expect(page.locator('html')).to_have_attribute('data-theme', re.compile('dark|light'))
    page.get_by_role('button', name='Log out').click()
    expect(page.locator('dialog.login')).to_be_visible()


FORBIDDEN = '''for (const area of ['localStorage', 'sessionStorage']) {
    Object.defineProperty(window, area, { get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); } });
}'''


def the_number_of_questions_goes_with_the_login(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    server.send('ask Which day?')
    page = stage.page(server)
    _log_in(page, BOSS)
    badge = page.locator('#nav [data-count="waiting"]')
    expect(badge).to_have_text('1')
    page.get_by_role('button', name='Log out').click()
    expect(page.locator('dialog.login')).to_be_visible()
    expect(badge).to_have_text('')
    expect(page).to_have_title(re.compile('^Tasks'))


def a_caller_who_is_no_admin_sees_its_own_tasks(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    hidden = server.send('a secret of the boss')['id']
    server.token = ALICE
    own = server.send('hello from alice')['id']
    page = stage.page(server)
    _log_in(page, ALICE)
    expect(page.locator(f'[data-task="{own}"]')).to_contain_text('hello from alice')
    expect(page.locator(f'[data-task="{hidden}"]')).to_have_count(0)
    page.locator(f'[data-task="{own}"]').click()
    expect(page.get_by_text('echo: hello from alice').first).to_be_visible()
    for path in ('deliveries', 'system'):
        page.goto(f'{server.url}/console/{path}')
        expect(page.locator('#main')).to_contain_text('admin')


def the_files_have_strict_headers(stage):
    server = stage.server()
    with urllib.request.urlopen(server.url + '/console/tasks/anything', timeout=20) as reply:
        policy = reply.headers['Content-Security-Policy']
        assert reply.headers['X-Content-Type-Options'] == 'nosniff'
        text = reply.read().decode()
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy, policy
    assert 'unsafe' not in policy, policy
    assert '<script>' not in text and 'onload=' not in text, text


def a_page_of_another_origin_cannot_frame_it(stage):
    server, other = stage.server(), stage.server()
    page = stage.page(other)
    page.evaluate(
        '''(url) => { const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame); }''', server.url + '/console'
    )
    # The policies of both pages refuse it; what the browser says of that is expected.
    until(page, lambda: stage.complaints, 'the frame is refused')
    framed = [frame.url for frame in page.frames if frame.url.startswith(server.url)]
    stage.complaints.clear()
    assert not framed, framed


def agents_of_another_login_are_not_kept(stage):
    server = stage.server(settings=_settings().replace('"run", "read"', '"run:demo", "read:demo"'))
    page = stage.page(server, '/console/agents')
    _log_in(page, BOSS)
    expect(page.locator('[data-agent="asks"]')).to_be_visible()
    page.get_by_role('button', name='Log out').click()
    _log_in(page, ALICE)
    expect(page.locator('#main')).to_contain_text('demo')
    expect(page.locator('#main')).to_contain_text('admin')


def tasks_of_the_same_id_are_told_apart(stage):
    """Callers of 0.1 choose ids, also such that are the number of another task."""
    server = stage.server(settings=_settings() + _token('bob', BOB, '["run", "read"]'))
    for token, name in ((ALICE, 'alice'), (BOB, 'bob')):
        server.token = token
        server.call('/', _own('3', f'ask of {name}?'), version='0.1')
    server.token = ALICE
    other = server.send('ask the third?')['id']
    server.token = BOSS
    numbers = {row['owner']: row['number'] for row in server.call('/admin/v1/tasks')['tasks'] if row['id'] == '3'}
    assert len(numbers) == 2, numbers
    page = stage.page(server)
    _log_in(page, BOSS)
    rows = page.locator('[data-task="3"]')
    expect(rows).to_have_count(2)
    row = rows.filter(has_text='of alice')
    number = numbers['token:alice']
    row.click()
    assert page.url.endswith(f'/console/tasks/3?no={number}'), page.url
    facts = page.get_by_label('Facts')
    expect(facts).to_contain_text('token:alice')
    page.get_by_role('button', name='Cancel', exact=True).click()
    page.get_by_role('button', name='Yes, cancel it').click()
    expect(facts).to_contain_text('canceled')
    states = {row['number']: row['state'] for row in server.call('/admin/v1/tasks')['tasks']}
    assert states.pop(number) == 'canceled' and set(states.values()) == {'input-required'}, states
    # Without a number one is asked which; the task whose number is 3 is another one.
    page.goto(f'{server.url}/console/tasks/3')
    expect(page.get_by_role('heading', name='Several tasks have this id')).to_be_visible()
    page.get_by_role('link', name='of bob').click()
    expect(facts).to_contain_text('token:bob')
    page.goto(f'{server.url}/console/tasks/{other}')
    expect(facts).to_contain_text('token:alice')


def a_delivery_names_its_task_whoever_has_others_with_its_id(stage):
    server = stage.server(settings='[push]\nallow_hosts = ["127.0.0.1"]\n' + _settings() + _token('bob', BOB, '["run", "read"]'))
    for token, name in ((ALICE, 'alice'), (BOB, 'bob')):
        server.token = token
        call = _own('3', f'ask of {name}?')
        call['params']['pushNotification'] = {'url': f'http://127.0.0.1:9/{name}'}
        server.call('/', call, version='0.1')
    page = stage.page(server, '/console/deliveries')
    _log_in(page, BOSS)
    for name in ('bob', 'alice'):
        page.goto(f'{server.url}/console/deliveries')
        receiver = page.locator(f'[data-receiver$="/{name}"]')
        receiver.locator('summary').click()
        receiver.get_by_role('link', name='3', exact=True).click()
        expect(page.get_by_label('Facts')).to_contain_text(f'token:{name}')


def a_whole_id_is_found_among_many_that_begin_with_it(stage):
    server = stage.server(settings=_settings() + _token('bob', BOB, '["run", "read"]'))
    server.token = ALICE
    for task in ('build', 'twice'):
        server.call('/', _own(task, f'{task} of alice'), version='0.1')
    server.token = BOB
    server.call('/', _own('twice', 'twice of bob'), version='0.1')
    for number in range(60):
        for task in ('build', 'twice'):
            server.call('/', _own(f'{task}-{number}', 'another'), version='0.1')
    page = stage.page(server)
    _log_in(page, BOSS)
    search = page.get_by_label('Search by task id')
    search.fill('build')
    page.keyboard.press('Enter')
    expect(page.get_by_label('Facts')).to_contain_text('token:alice')
    expect(page.get_by_role('heading', level=1)).to_have_text('build of alice')
    page.goto(f'{server.url}/console/tasks?id=twice')
    expect(page.get_by_role('heading', name='Several tasks have this id')).to_be_visible()
    expect(page.get_by_role('link', name='twice of alice')).to_be_visible()
    page.get_by_role('link', name='twice of bob').click()
    expect(page.get_by_label('Facts')).to_contain_text('token:bob')
    # A part of an id lists what begins so.
    page.goto(f'{server.url}/console/tasks?id=twice-')
    expect(page.locator('[data-task="twice-59"]')).to_be_visible()


def _own(task, text):
    return {'jsonrpc': '2.0', 'id': 1, 'method': 'tasks/send', 'params': {'id': task, 'message': {'role': 'user', 'parts': [{'type': 'text', 'text': text}]}}}


def _token(name, token, scopes):
    return f'[[auth.token]]\nsubject = "{name}"\nhash = "sha256:{hashlib.sha256(token.encode()).hexdigest()}"\nscopes = {scopes}\n'

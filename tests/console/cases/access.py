"""Who sees what: tokens, and what a page may do."""

import hashlib
import urllib.request

from playwright.sync_api import expect

BOSS, ALICE = 'sabir_boss-0123456789abcdef0123456789', 'sabir_alice-0123456789abcdef012345678'


def _settings():
    tables = [('boss', BOSS, '["admin"]'), ('alice', ALICE, '["run", "read"]')]
    hashed = [(name, hashlib.sha256(token.encode()).hexdigest(), scopes) for name, token, scopes in tables]
    return ''.join(
        f'[[auth.token]]\nsubject = "{name}"\nhash = "sha256:{digest}"\nscopes = {scopes}\n' for name, digest, scopes in hashed
    )


def a_token_is_asked_for_and_kept_for_the_session_only(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    task = server.send('hello')['id']
    page = stage.page(server)
    field = page.locator('dialog.login input')
    expect(field).to_be_visible()
    field.fill('wrong')
    page.keyboard.press('Enter')
    # It is asked for again, and nothing is shown.
    page.wait_for_timeout(1000)
    expect(field).to_be_visible()
    expect(page.locator('[data-task]')).to_have_count(0)
    field.fill(BOSS)
    page.keyboard.press('Enter')
    expect(page.locator(f'[data-task="{task}"]')).to_be_visible()
    assert BOSS not in page.evaluate('JSON.stringify(localStorage)')
    assert BOSS not in page.url
    assert page.context.cookies() == []
    # Another tab of the same profile is another session.
    other = page.context.new_page()
    other.goto(server.url + '/console')
    expect(other.locator('dialog.login input')).to_be_visible()


def a_caller_who_is_no_admin_sees_its_own_tasks(stage):
    server = stage.server(settings=_settings())
    server.token = BOSS
    hidden = server.send('a secret of the boss')['id']
    server.token = ALICE
    own = server.send('hello from alice')['id']
    page = stage.page(server)
    page.locator('dialog.login input').fill(ALICE)
    page.keyboard.press('Enter')
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
    page.wait_for_timeout(500)
    framed = [frame.url for frame in page.frames if frame.url.startswith(server.url)]
    # The policies of both pages refuse it; what the browser says of that is expected.
    stage.complaints.clear()
    assert not framed, framed

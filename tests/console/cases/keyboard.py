"""Everything by keys."""

from playwright.sync_api import expect

from stage import go_to, settle


def pages_are_reached_by_keys(stage):
    page = stage.page(stage.server())
    expect(page.get_by_role('heading', name='Tasks', exact=True)).to_be_visible()
    for key, name in (('w', 'Waiting'), ('a', 'Agents'), ('d', 'Deliveries'), ('s', 'System'), ('t', 'Tasks')):
        go_to(page, key, page.get_by_role('heading', name=name, level=1))
        expect(page.locator('#nav [aria-current="page"]')).to_contain_text(name)


def rows_are_walked_and_opened(stage):
    server = stage.server()
    for number in range(3):
        server.send(f'number {number}')
    page = stage.page(server)
    expect(page.locator('[data-task]')).to_have_count(3)
    page.keyboard.press('j')
    page.keyboard.press('j')
    page.keyboard.press('j')
    page.keyboard.press('k')
    page.keyboard.press('Enter')
    expect(page.get_by_text('echo: number 1').first).to_be_visible()


def search_and_help_have_keys(stage):
    page = stage.page(stage.server())
    expect(page.get_by_role('heading', name='No tasks yet')).to_be_visible()
    page.keyboard.press('/')
    expect(page.get_by_label('Search by task id')).to_be_focused()
    page.keyboard.press('Escape')
    page.keyboard.press('?')
    keys = page.get_by_role('dialog', name='Keys')
    expect(keys).to_contain_text('Search')
    page.keyboard.press('Escape')
    expect(keys).to_have_count(0)


def a_permission_is_given_by_a_key(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.locator('.question')).to_be_visible()
    page.keyboard.press('y')
    server.until(task, 'COMPLETED')


def a_permission_is_refused_by_a_key(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = stage.page(server, '/console/waiting')
    expect(page.locator('.question')).to_be_visible()
    page.keyboard.press('n')
    server.until(task, 'COMPLETED')
    assert 'not allowed' in str(server.task(task)['artifacts'])


def a_task_is_canceled_by_keys(stage):
    server = stage.server()
    task = server.send('slow 600', wait=False)['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_label('Facts')).to_contain_text('working')
    expect(page.get_by_role('button', name='Cancel', exact=True)).to_be_visible()
    page.keyboard.press('c')
    expect(page.get_by_role('button', name='Yes, cancel it')).to_be_focused()
    page.keyboard.press('Enter')
    server.until(task, 'CANCELED')


def every_control_can_be_reached_and_is_named(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    for path in ('tasks', f'tasks/{task}', 'waiting', 'agents/demo', 'deliveries', 'system'):
        page = stage.page(server, f'/console/{path}')
        settle(page)
        nameless = page.evaluate(
            '''() => [...document.querySelectorAll('button, a[href], input, textarea, select, img')].filter((control) =>
                control.checkVisibility() && !(control.getAttribute('aria-label') || control.textContent.trim() || control.title
                    || control.alt || control.labels?.length)).map((control) => control.outerHTML.slice(0, 120))'''
        )
        assert not nameless, f'{path}: {nameless}'
        for _ in range(4):
            page.keyboard.press('Tab')
        ring = page.evaluate(
            '''() => { const style = getComputedStyle(document.activeElement);
                return [document.activeElement.tagName, style.outlineStyle, style.outlineWidth, style.boxShadow]; }'''
        )
        assert ring[0] != 'BODY' and (ring[1] != 'none' and ring[2] != '0px' or ring[3] != 'none'), f'{path}: {ring}'


def a_key_that_is_held_answers_once(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    card = page.locator('.question')
    expect(card).to_be_visible()
    sent = []

    def slowly(route):
        sent.append(route.request.post_data)
        page.wait_for_timeout(500)
        route.continue_()

    page.route('**/message:send', slowly)
    for _ in range(4):
        page.keyboard.down('y')
    page.keyboard.up('y')
    # Pressed again while the answer is under way.
    page.keyboard.press('y')
    page.keyboard.press('n')
    expect(page.get_by_label('Facts')).to_contain_text('completed')
    page.wait_for_timeout(500)
    assert len(sent) == 1, sent

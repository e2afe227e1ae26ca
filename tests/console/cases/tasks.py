"""The list of tasks."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from stage import settle, wait_for


def an_empty_list_says_what_to_do(stage):
    page = stage.page(stage.server())
    expect(page.get_by_role('heading', name='No tasks yet')).to_be_visible()
    expect(page.get_by_text('sabir send hello')).to_be_visible()


def tasks_are_shown_with_state_agent_and_words(stage):
    server = stage.server()
    done = server.send('hello from a test')
    failed = server.send('fail out of paper')
    page = stage.page(server)
    row = page.locator(f'[data-task="{done["id"]}"]')
    expect(row).to_contain_text('completed')
    expect(row).to_contain_text('hello from a test')
    expect(row).to_contain_text('demo')
    expect(page.locator(f'[data-task="{failed["id"]}"]')).to_contain_text('out of paper')


def new_tasks_and_new_states_come_by_themselves(stage):
    server = stage.server()
    first = server.send('hello')
    page = stage.page(server)
    expect(page.locator('[data-task]')).to_have_count(1)
    slow = server.send('slow 600', wait=False)['id']
    row = page.locator(f'[data-task="{slow}"]')
    expect(row).to_contain_text('working')
    # The newest is above the one that was there.
    assert page.locator('[data-task]').first.get_attribute('data-task') == slow
    server.call(f'/tasks/{slow}:cancel', {})
    expect(row).to_contain_text('canceled')
    expect(page.locator(f'[data-task="{first["id"]}"]')).to_contain_text('completed')


def counts_are_links_to_filters(stage):
    server = stage.server()
    server.send('hello')
    server.send('fail for a reason')
    waiting = server.send('ask Which day?')['id']
    page = stage.page(server)
    page.locator('#main [data-count="waiting"]').click()
    expect(page.locator('[data-task]')).to_have_count(1)
    expect(page.locator(f'[data-task="{waiting}"]')).to_be_visible()
    assert 'state=waiting' in page.url
    page.go_back()
    expect(page.locator('[data-task]')).to_have_count(3)


def filters_are_in_the_address(stage):
    server = stage.server()
    server.send('hello')
    asked = server.send('please remove it', agent='asks')['id']
    page = stage.page(server, '/console/tasks?agent=asks&state=input-required')
    expect(page.locator('[data-task]')).to_have_count(1)
    expect(page.locator(f'[data-task="{asked}"]')).to_be_visible()
    page.get_by_label('state', exact=True).select_option('completed')
    expect(page.get_by_role('heading', name='No task fits')).to_be_visible()
    assert 'agent=asks' in page.url and 'state=completed' in page.url


def a_task_is_found_by_its_id(stage):
    server = stage.server()
    wanted = server.send('needle')['id']
    server.send('hay')
    page = stage.page(server)
    expect(page.locator('[data-task]')).to_have_count(2)
    search = page.get_by_label('Search by task id')
    search.fill(wanted[:-4])
    page.keyboard.press('Enter')
    expect(page.locator('[data-task]')).to_have_count(1)
    expect(page.locator(f'[data-task="{wanted}"]')).to_contain_text('needle')
    # A whole id opens the task.
    search.fill(wanted)
    page.keyboard.press('Enter')
    expect(page.get_by_text('echo: needle').first).to_be_visible()


def older_tasks_are_loaded_on_demand(stage):
    server = stage.server()
    for number in range(120):
        server.send(f'number {number}')
    page = stage.page(server)
    more = page.get_by_role('button', name='Load more')
    expect(more).to_be_visible()
    seen = page.locator('[data-task]').count()
    assert 20 <= seen < 120, seen
    while more.is_visible():
        before = page.locator('[data-task]').count()
        more.click()
        wait_for(page, 'before => document.querySelectorAll("[data-task]").length > before', before)
    expect(page.locator('[data-task]')).to_have_count(120)


def new_tasks_wait_while_one_reads_further_down(stage):
    server = stage.server()
    for number in range(40):
        server.send(f'number {number}')
    page = stage.page(server, height=400)
    expect(page.locator('[data-task]')).to_have_count(40)
    page.evaluate('window.scrollTo(0, 600)')
    before = page.locator('[data-task]').nth(20).bounding_box()
    for expected in ('1 new task', '2 new tasks'):
        newest = server.send('news')['id']
        expect(page.locator('.newer')).to_have_text(expected)
    expect(page.locator('[data-task]')).to_have_count(40)
    assert page.locator('[data-task]').nth(20).bounding_box() == before
    page.locator('.newer').click()
    expect(page.locator('[data-task]')).to_have_count(42)
    expect(page.locator('.newer')).to_be_hidden()
    assert page.locator('[data-task]').first.get_attribute('data-task') == newest


def a_burst_of_new_tasks_is_shown_whole(stage):
    """More of them between two looks than a page has, while the newest one was known before."""
    rows = [_row(number) for number in range(1, 61)]
    page = _page_of(stage, rows)
    expect(page.locator('[data-task]')).to_have_count(50)
    rows += [_row(number) for number in range(61, 221)]
    rows[59]['statusTime'] = _time(500)
    expect(page.locator('[data-task]')).to_have_count(210)
    page.get_by_role('button', name='Load more').click()
    expect(page.locator('[data-task]')).to_have_count(220)


def a_list_keeps_so_many_rows_and_finds_the_others_again(stage):
    rows = [_row(number) for number in range(1, 31)]
    page = _page_of(stage, rows)
    shown = page.locator('[data-task]')
    for count in range(430, 2431, 400):
        rows += [_row(number) for number in range(len(rows) + 1, count + 1)]
        expect(shown.first).to_have_attribute('data-task', f'task-{count}')
        expect(shown).to_have_count(min(count, 2000))
    assert shown.last.get_attribute('data-task') == 'task-431'
    page.get_by_role('button', name='Load more').click()
    expect(page.locator('[data-task="task-430"]')).to_be_attached()
    expect(page.locator('[data-task="task-400"]')).to_be_attached()


def a_list_that_was_left_far_behind_begins_again(stage):
    rows = [_row(number) for number in range(1, 31)]
    page = _page_of(stage, rows)
    expect(page.locator('[data-task]')).to_have_count(30)
    rows += [_row(number) for number in range(31, 3031)]
    expect(page.locator('[data-task]')).to_have_count(50)
    expect(page.locator('[data-task]').first).to_have_attribute('data-task', 'task-3030')
    page.get_by_role('button', name='Load more').click()
    expect(page.locator('[data-task]')).to_have_count(100)


def a_list_that_is_not_updated_says_so(stage):
    server = stage.server()
    server.send('hello')
    for path, calls in (('tasks', 'admin/v1/tasks?*'), ('waiting', 'tasks?*'), ('agents', 'admin/v1/agents'), ('deliveries', 'admin/v1/deliveries?*'), ('system', 'admin/v1/system')):
        page = stage.page(server, f'/console/{path}')
        settle(page)
        line = page.get_by_text('Not updated since')
        expect(line).to_have_count(0)
        page.route(f'{server.url}/{calls}', lambda route: route.fulfill(status=503, json={'detail': 'the database is away'}))
        expect(line).to_contain_text('the database is away')
        page.unroute(f'{server.url}/{calls}')
        page.get_by_role('button', name='Try again').click()
        expect(page.get_by_role('button', name='Try again')).to_be_hidden()


def _time(second):
    return f'2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z'


def _row(number):
    about = {'agent': 'demo', 'owner': 'anonymous', 'state': 'completed', 'events': 4, 'dialect': '1.0', 'context': 'c'}
    return {'number': number, 'id': f'task-{number}', 'message': f'number {number}', 'statusTime': _time(number), 'created': _time(number), **about}


def _page_of(stage, rows):
    """A page over a list of tasks that no server could make so fast."""
    server = stage.server()
    page = stage.page(server, '/console/system')

    def answer(route):
        query = parse_qs(urlsplit(route.request.url).query)
        listed = sorted(rows, key=lambda row: (row['statusTime'], row['number']), reverse=True)
        after = query.get('after', [''])[0]
        start = next((at + 1 for at, row in enumerate(listed) if f'{row["statusTime"]} {row["number"]}' == after), 0)
        tasks = listed[start : start + int(query['limit'][0])]
        more = start + len(tasks) < len(listed)
        route.fulfill(json={'tasks': tasks, 'counts': {}, **({'after': f'{tasks[-1]["statusTime"]} {tasks[-1]["number"]}'} if more else {})})

    page.route(f'{server.url}/admin/v1/tasks?*', answer)
    page.get_by_role('link', name='Tasks').click()
    return page

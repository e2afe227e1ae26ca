"""The list of tasks."""

from playwright.sync_api import expect

from stage import wait_for


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
    slow = server.send('slow 30', wait=False)['id']
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

"""Everything by keys."""

import json
import re

from playwright.sync_api import expect

from stage import go_to, ready, settle, wait_for


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
    ready(page.locator('.question'))
    page.keyboard.press('y')
    server.until(task, 'COMPLETED')


def a_permission_is_refused_by_a_key(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = stage.page(server, '/console/waiting')
    ready(page.locator('.question'))
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
    ready(page.locator('.question'))
    sent = []
    page.route('**/message:send', lambda route: sent.append(route))
    for _ in range(4):
        page.keyboard.down('y')
    page.keyboard.up('y')
    # Pressed again while the answer is under way.
    page.keyboard.press('y')
    page.keyboard.press('n')
    wait_for(page, '() => document.querySelector(".question.busy")')
    sent[0].continue_()
    expect(page.get_by_label('Facts')).to_contain_text('completed')
    expect(page.locator('.question')).to_have_count(0)
    assert len(sent) == 1, [route.request.post_data for route in sent]


def keys_answer_only_the_question_in_focus(stage):
    """On the page of a task and on that of all questions: the first key shows which one it is."""
    server = stage.server()
    for path in ('tasks', 'waiting'):
        task = server.send('please remove it', agent='asks')['id']
        page = stage.page(server, f'/console/tasks/{task}' if path == 'tasks' else '/console/waiting')
        card = page.locator('.question')
        expect(card.locator('.controls')).not_to_have_attribute('aria-disabled', 'true')
        page.keyboard.press('y')
        expect(card).to_be_focused()
        assert server.task(task)['status']['state'] == 'TASK_STATE_INPUT_REQUIRED', path
        ready(card)
        page.keyboard.press('y')
        server.until(task, 'COMPLETED')


def keys_answer_the_question_that_was_pointed_at(stage):
    server = stage.server()
    tasks = [server.send('please remove it', agent='asks')['id'] for _ in range(2)]
    page = stage.page(server, '/console/waiting')
    cards = page.locator('.question')
    expect(cards).to_have_count(2)
    cards.nth(0).focus()
    box = cards.nth(1).bounding_box()
    page.mouse.move(box['x'] + 30, box['y'] + 20)
    page.mouse.move(box['x'] + 40, box['y'] + 20)
    expect(cards.nth(1)).to_have_class(re.compile('chosen'))
    expect(cards.nth(1).locator('.controls')).not_to_have_attribute('aria-disabled', 'true')
    page.keyboard.press('y')
    server.until(tasks[1], 'COMPLETED')
    assert server.task(tasks[0])['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'


def a_key_answers_for_this_time_only(stage):
    """An answer that holds for ever is never what a plain yes or no means, wherever it stands among the choices."""
    for_ever = [{'id': f'{kind}-ever', 'name': f'Always {kind}', 'kind': f'{kind}_always'} for kind in ('allow', 'reject')]
    server = stage.server()
    page = stage.page(server, '/console/system')

    def with_more_choices(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('"choices":[', f'"choices":{json.dumps(for_ever)[:-1]},'))

    page.route('**/tasks?status=*', with_more_choices)
    for key, choice in (('y', 'allow'), ('n', 'reject')):
        task = server.send('please remove it', agent='asks')['id']
        page.goto(f'{server.url}/console/waiting')
        card = page.locator('.question')
        expect(card.get_by_role('group', name='Answers').get_by_role('button')).to_have_count(4)
        expect(card.locator('.primary')).to_have_text('Allow')
        ready(card)
        with page.expect_request('**/message:send') as sending:
            page.keyboard.press(key)
        data = sending.value.post_data_json['message']['parts'][0]['data']
        assert data['optionId'] == choice and data['questionId'], data
        server.until(task, 'COMPLETED')

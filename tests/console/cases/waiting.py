"""The inbox of open questions."""

import re

from playwright.sync_api import expect


def questions_of_all_agents_are_answered_in_place(stage):
    server = stage.server()
    asked = server.send('ask Which day?')['id']
    permission = server.send('please remove it', agent='asks')['id']
    server.send('hello')
    page = stage.page(server, '/console/waiting')
    cards = page.locator('.question')
    expect(cards).to_have_count(2)
    # The oldest first.
    expect(cards.first).to_contain_text('Which day?')
    expect(page).to_have_title(re.compile(r'^\(2\)'))
    expect(page.locator('#nav [data-count="waiting"]')).to_have_text('2')
    cards.nth(1).get_by_role('button', name='Allow').click()
    server.until(permission, 'COMPLETED')
    expect(cards).to_have_count(1)
    expect(page).to_have_title(re.compile(r'^\(1\)'))
    cards.first.get_by_role('textbox').fill('Tuesday')
    page.keyboard.press('Enter')
    server.until(asked, 'COMPLETED')
    expect(page.get_by_role('heading', name='Nobody waits')).to_be_visible()


def a_question_that_comes_up_appears(stage):
    server = stage.server()
    page = stage.page(server, '/console/waiting')
    expect(page.get_by_role('heading', name='Nobody waits')).to_be_visible()
    server.send('ask Really?')
    expect(page.locator('.question')).to_contain_text('Really?')


def an_answer_that_is_being_written_is_not_taken_away(stage):
    server = stage.server()
    task = server.send('ask Which day?')['id']
    page = stage.page(server, '/console/waiting')
    page.locator('.question').get_by_role('textbox').fill('half a wor')
    server.call('/message:send', {'message': {'messageId': 'by-somebody-else', 'role': 'ROLE_USER', 'taskId': task, 'parts': [{'text': 'x'}]}})
    server.send('ask And now?')
    expect(page.locator('.question')).to_have_count(2)
    expect(page.locator('.question').first.get_by_role('textbox')).to_have_value('half a wor')


def the_oldest_of_many_questions_is_shown_first(stage):
    """More of them than a page of A2A or of admin calls has."""
    server = stage.server()
    first = server.send('ask Number 0?')['id']
    for number in range(1, 120):
        server.send(f'ask Number {number}?', wait=False)
    page = stage.page(server, '/console/waiting')
    cards = page.locator('.question')
    expect(cards).to_have_count(120)
    expect(cards.first).to_contain_text('Number 0?')
    expect(cards.first.get_by_role('link', name='demo')).to_be_visible()
    assert page.locator('.question .agent').count() == 120
    cards.first.get_by_role('textbox').fill('yes')
    page.keyboard.press('Enter')
    server.until(first, 'COMPLETED')
    expect(cards).to_have_count(119)

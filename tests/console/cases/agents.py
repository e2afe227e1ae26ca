"""The agents."""

import json

from playwright.sync_api import expect


def agents_are_listed_with_their_work(stage):
    server = stage.server()
    server.send('slow 30', wait=False)
    page = stage.page(server, '/console/agents')
    row = page.locator('[data-agent="demo"]')
    expect(row).to_contain_text('1 of')
    expect(page.locator('[data-agent="asks"]')).to_contain_text('Asks first')


def a_message_is_sent_from_an_example(stage):
    server = stage.server()
    page = stage.page(server, '/console/agents/demo')
    chip = page.get_by_label('Examples').get_by_role('button').first
    words = chip.inner_text()
    chip.click()
    expect(page.get_by_label('Message to demo')).to_have_value(words)
    page.get_by_label('Message to demo').fill('hello you')
    page.get_by_role('button', name='Send', exact=True).click()
    expect(page.get_by_text('echo: hello you').first).to_be_visible()
    assert '/console/tasks/' in page.url


def a_card_is_shown_in_each_dialect(stage):
    server = stage.server()
    page = stage.page(server, '/console/agents/demo')
    page.locator('[data-card="1.0"]').click()
    expect(page.locator('pre.card')).to_contain_text('supportedInterfaces')
    assert 'preferredTransport' not in json.loads(page.locator('pre.card').inner_text())
    page.locator('[data-card="0.3"]').click()
    expect(page.locator('pre.card')).to_contain_text('preferredTransport')
    assert 'supportedInterfaces' not in json.loads(page.locator('pre.card').inner_text())

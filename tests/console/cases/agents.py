"""The agents."""

from playwright.sync_api import expect

from stage import wait_for

# Whether the card that is shown has the first member, and not the second.
HAS_AND_HAS_NOT = '''([own, foreign]) => {
    const card = JSON.parse(document.querySelector('pre.card').textContent);
    return own in card && !(foreign in card);
}'''


def agents_are_listed_with_their_work(stage):
    server = stage.server()
    server.send('slow 600', wait=False)
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
    # First it shows the card with the members of all versions.
    expect(page.locator('pre.card')).to_contain_text('{')
    for version, own, foreign in (('1.0', 'supportedInterfaces', 'preferredTransport'), ('0.3', 'preferredTransport', 'supportedInterfaces')):
        page.locator(f'[data-card="{version}"]').click()
        wait_for(page, HAS_AND_HAS_NOT, [own, foreign])

"""A server that goes away and comes back."""

import re

from playwright.sync_api import expect


def a_stream_goes_on_after_a_crash_of_the_server(stage):
    """The demo agent's run does not survive; what it said before does, and what recovery says comes in by itself."""
    server = stage.server()
    task = server.send('stream 200 50', wait=False)['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_text(re.compile(r'chunk 5\b')).first).to_be_visible()
    server.kill()
    expect(page.get_by_text('reconnecting, nothing is lost')).to_be_visible()
    server.start()
    expect(page.get_by_text('reconnecting, nothing is lost')).to_have_count(0)
    expect(page.get_by_label('Facts')).to_contain_text('failed')
    stored = re.findall(r'chunk (\d+)\b', str(server.task(task)['artifacts']))
    shown = re.findall(r'chunk (\d+)\b', page.get_by_label('Events', exact=True).inner_text())
    assert shown == stored, (shown[-5:], stored[-5:])


def a_run_that_is_begun_again_is_followed(stage):
    server = stage.server(settings='[recovery]\nrunning = "requeue"\n')
    task = server.send('slow 4 hello again', wait=False)['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_label('Facts')).to_contain_text('working')
    server.restart()
    expect(page.get_by_text(re.compile('echo: .*hello again')).first).to_be_visible(timeout=30_000)
    expect(page.get_by_label('Facts')).to_contain_text('completed')
    numbers = page.evaluate('[...document.querySelectorAll("[data-event]")].map((row) => Number(row.dataset.event))')
    assert numbers == sorted(set(numbers)), numbers


def the_list_and_open_questions_survive(stage):
    server = stage.server()
    asked = server.send('ask Which day?')['id']
    page = stage.page(server, '/console/waiting')
    expect(page.locator('.question')).to_be_visible()
    page.locator('.question').get_by_role('textbox').fill('Wednesday')
    server.restart()
    server.send('ask And now?')
    expect(page.locator('.question')).to_have_count(2)
    page.locator('.question').first.get_by_role('button', name='Answer').click()
    server.until(asked, 'COMPLETED')

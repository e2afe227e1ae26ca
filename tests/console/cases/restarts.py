"""A server that goes away and comes back."""

import re
import signal

from playwright.sync_api import expect

from stage import PERMISSION, until, wait_for


def a_stream_goes_on_after_a_crash_of_the_server(stage):
    """The demo agent's run does not survive; what it said before does, and what recovery says comes in by itself."""
    server = stage.server()
    task = server.send('stream 100000 100', wait=False)['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_text(re.compile(r'chunk 5\b')).first).to_be_visible()
    server.kill()
    expect(page.get_by_text('reconnecting, nothing is lost')).to_be_visible()
    server.start()
    expect(page.get_by_text('reconnecting, nothing is lost')).to_have_count(0)
    events = page.get_by_label('Events', exact=True)
    expect(events).to_contain_text('Failed')
    expect(page.get_by_label('Facts')).to_contain_text('failed')
    stored = re.findall(r'chunk (\d+)\b', str(server.task(task)['artifacts']))
    shown = re.findall(r'chunk (\d+)\b', events.inner_text())
    assert shown == stored, (shown[-5:], stored[-5:])


def a_task_is_shown_when_the_server_is_back(stage):
    """A page that was opened while the server was away, and the end of a timeline that was asked for then."""
    server = stage.server()
    task = server.send('stream 1000 0')['id']
    page = stage.page(server)
    expect(page.locator(f'[data-task="{task}"]')).to_be_visible()
    server.kill()
    page.locator(f'[data-task="{task}"]').click()
    expect(page.get_by_text('reconnecting, nothing is lost')).to_be_visible()
    server.start()
    events = page.get_by_label('Events', exact=True)
    expect(events).to_contain_text('Completed')
    expect(page.get_by_label('Facts')).to_contain_text('demo')
    buttons = [page.get_by_role('button', name=name) for name in ('Last', 'Follow')]
    for act in (lambda: page.keyboard.press('f'), *(button.click for button in buttons)):
        page.goto(f'{server.url}/console/tasks/{task}?from=1')
        expect(events).to_contain_text('chunk 200')
        expect(events).not_to_contain_text('Completed')
        expect(page.get_by_text('newer events')).to_be_attached()
        server.kill()
        act()
        expect(page.get_by_text('reconnecting, nothing is lost')).to_be_visible()
        # What one sees stays until there is something else.
        expect(events).to_contain_text('chunk 200')
        server.start()
        expect(events).to_contain_text('Completed')
        expect(page.locator('.failure')).to_have_count(0)


def a_run_that_is_begun_again_is_followed(stage):
    server = stage.server(said={**PERMISSION, 'gate': True}, settings='[recovery]\nrunning = "requeue"\n')
    task = server.send('please', agent='asks', wait=False)['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_label('Facts')).to_contain_text('working')
    server.restart()
    (server.folder / 'go').touch()
    page.locator('.question').get_by_role('button', name='Allow').click()
    expect(page.get_by_text('The folder build is gone.').first).to_be_visible()
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


def a_connection_that_died_silently_is_noticed(stage):
    """A stopped process keeps its connections and answers nothing, as a network that drops everything does."""
    server = stage.server()
    task = server.send('slow 300', wait=False)['id']
    page = stage.page(server)
    streams = []
    page.on('response', lambda response: streams.append(response.request) if response.url.endswith(':subscribe') else None)
    page.clock.install()
    page.goto(f'{server.url}/console/tasks/{task}')
    expect(page.get_by_label('Facts')).to_contain_text('working')
    # Some read the events that were; the last one waits for more.
    wait_for(page, '() => document.querySelectorAll("[data-event]").length >= 2')
    until(page, lambda: page.unanswered.intersection(streams), 'a stream is open')
    bar = page.get_by_text('reconnecting, nothing is lost')
    server.child.send_signal(signal.SIGSTOP)
    try:
        # Time passes on the page alone.
        until(page, lambda: page.clock.fast_forward(1000) or bar.count(), 'the loss is noticed')
        before = len(streams)
    finally:
        server.child.send_signal(signal.SIGCONT)
    until(page, lambda: page.clock.fast_forward(1000) or len(streams) > before, 'another stream is opened')
    expect(bar).to_have_count(0)
    server.call(f'/tasks/{task}:cancel', {})
    expect(page.get_by_label('Facts')).to_contain_text('canceled')

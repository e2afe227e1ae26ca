"""A server that goes away and comes back."""

import re
import signal

from playwright.sync_api import expect

from stage import wait_for


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


def a_run_that_is_begun_again_is_followed(stage):
    server = stage.server(settings='[recovery]\nrunning = "requeue"\n')
    # So long that it still works when the page is there. On a busy machine that may take a while.
    for seconds in (4, 15, 60):
        task = server.send(f'slow {seconds} hello again', wait=False)['id']
        page = stage.page(server, f'/console/tasks/{task}')
        expect(page.get_by_label('Facts')).to_contain_text(re.compile('working|completed'))
        if server.task(task)['status']['state'] == 'TASK_STATE_WORKING':
            break
    server.restart()
    expect(page.get_by_text(re.compile('echo: .*hello again')).first).to_be_visible(timeout=180_000)
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
    page.on('request', lambda request: streams.append(request.url) if request.url.endswith(':subscribe') else None)
    page.clock.install()
    page.goto(f'{server.url}/console/tasks/{task}')
    expect(page.get_by_label('Facts')).to_contain_text('working')
    wait_for(page, '() => document.querySelectorAll("[data-event]").length >= 2')
    page.wait_for_timeout(500)
    before = len(streams)
    server.child.send_signal(signal.SIGSTOP)
    try:
        page.clock.fast_forward(46_000)
        page.wait_for_timeout(500)
        page.clock.fast_forward(2000)
        expect(page.get_by_text('reconnecting, nothing is lost')).to_be_visible()
    finally:
        server.child.send_signal(signal.SIGCONT)
    for _ in range(20):
        page.clock.fast_forward(6000)
        page.wait_for_timeout(500)
        if len(streams) > before:
            break
    assert len(streams) > before, streams
    expect(page.get_by_text('reconnecting, nothing is lost')).to_have_count(0)
    server.call(f'/tasks/{task}:cancel', {})
    expect(page.get_by_label('Facts')).to_contain_text('canceled')

"""The pictures of README.md and docs/."""

from playwright.sync_api import expect


def the_pages_as_readers_see_them(stage):
    server = stage.server()
    for words in ('hello', 'Summarise the release notes of March', 'fail the printer is out of paper', 'tool grep', 'usage 1200 340'):
        server.send(words)
    server.send('ask Which of the two branches should be merged?')
    asked = server.send('Clean the project and build it again', agent='asks')['id']
    server.send('slow 120 Translate the handbook', wait=False)
    server.send('stream 30 0')
    options = {'device_scale_factor': 2, 'width': 1200, 'height': 720}
    page = stage.page(server, color_scheme='dark', **options)
    expect(page.locator('[data-task]')).to_have_count(9)
    stage.screenshot(page, 'console-tasks-dark')
    page = stage.page(server, f'/console/tasks/{asked}', color_scheme='light', **options)
    expect(page.locator('.question')).to_be_visible()
    stage.screenshot(page, 'console-task-light')

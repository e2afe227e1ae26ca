"""The server itself."""

from playwright.sync_api import expect


def the_server_says_what_it_is(stage):
    server = stage.server()
    server.send('hello')
    page = stage.page(server, '/console/system')
    main = page.locator('#main')
    version = server.call('/admin/v1/system')['version']
    expect(main).to_contain_text(version)
    expect(main).to_contain_text('sqlite')
    expect(main).to_contain_text('server.listen')
    expect(main).to_contain_text('tasks.db')

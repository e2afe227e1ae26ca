"""One task: its life, what is known of it, what one can do with it."""

import json
import re

from playwright.sync_api import expect

from stage import PERMISSION, settle, until, wait_for

# Each is a row; a page holds 400.
STEPS = 1200


def _open(stage, server, task, **options):
    return stage.page(server, f'/console/tasks/{task}', **options)


def a_life_is_told_from_its_first_event(stage):
    server = stage.server()
    task = server.send('usage 700 50')['id']
    page = _open(stage, server, task)
    events = page.get_by_label('Events', exact=True)
    expect(events).to_contain_text('Created')
    expect(events).to_contain_text('usage 700 50')
    expect(events).to_contain_text('Completed')
    facts = page.get_by_label('Facts')
    expect(facts).to_contain_text('completed')
    expect(facts).to_contain_text('demo')
    expect(facts).to_contain_text('750 tokens')


def text_streams_in(stage):
    server = stage.server()
    task = server.send('stream 100000 100', wait=False)['id']
    page = _open(stage, server, task)
    expect(page.get_by_text('chunk 3', exact=False).first).to_be_visible()
    assert server.task(task)['status']['state'] == 'TASK_STATE_WORKING'
    server.call(f'/tasks/{task}:cancel', {})
    events = page.get_by_label('Events', exact=True)
    expect(events).to_contain_text('Canceled')
    expect(page.get_by_label('Facts')).to_contain_text('canceled')
    shown = re.findall(r'chunk (\d+)\b', events.inner_text())
    stored = re.findall(r'chunk (\d+)\b', str(server.task(task)['artifacts']))
    assert shown == stored == [str(number) for number in range(1, len(shown) + 1)], (shown[-5:], stored[-5:])


def a_tool_call_is_folded_with_its_result(stage):
    server = stage.server()
    task = server.send('tool grep')['id']
    page = _open(stage, server, task)
    tool = page.locator('.event.tool')
    expect(tool).to_have_count(1)
    expect(tool).to_contain_text('grep')
    expect(tool).to_contain_text('completed')
    assert tool.locator('details').get_attribute('open') is None
    tool.locator('summary').click()
    expect(tool).to_contain_text('Result')


def a_question_is_answered_by_button(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = _open(stage, server, task)
    card = page.locator('.question')
    expect(card).to_contain_text('rm -rf build')
    # The tool's input is shown whole.
    expect(card).to_contain_text('Remove what was built')
    card.get_by_role('button', name='Allow').click()
    expect(page.get_by_text('The folder build is gone.').first).to_be_visible()
    server.until(task, 'COMPLETED')
    expect(page.locator('.question')).to_have_count(0)
    # Markdown is drawn.
    expect(page.locator('strong', has_text='build').first).to_be_visible()


def a_question_is_answered_in_words(stage):
    server = stage.server()
    task = server.send('ask Which day?')['id']
    page = _open(stage, server, task)
    card = page.locator('.question')
    expect(card).to_contain_text('Which day?')
    card.get_by_role('textbox').fill('on Monday')
    card.get_by_role('button', name='Answer').click()
    expect(page.get_by_text('echo: on Monday').first).to_be_visible()
    server.until(task, 'COMPLETED')


def a_no_with_a_reason_denies(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    page = _open(stage, server, task)
    page.locator('.question').get_by_role('textbox').fill('not on a Friday')
    page.locator('.question').get_by_role('button', name='Deny').click()
    expect(page.get_by_text('It was not allowed.').first).to_be_visible()


def cancel_asks_once(stage):
    server = stage.server()
    task = server.send('slow 600', wait=False)['id']
    page = _open(stage, server, task)
    expect(page.get_by_label('Facts')).to_contain_text('working')
    page.get_by_role('button', name='Cancel', exact=True).click()
    expect(page.get_by_role('button', name='Yes, cancel it')).to_be_visible()
    assert server.task(task)['status']['state'] == 'TASK_STATE_WORKING'
    page.get_by_role('button', name='Yes, cancel it').click()
    expect(page.get_by_label('Facts')).to_contain_text('canceled')
    server.until(task, 'CANCELED')


def a_follow_up_goes_into_the_same_context(stage):
    server = stage.server()
    first = server.send('hello')
    page = _open(stage, server, first['id'])
    page.get_by_label('A new task in the same context').fill('history')
    page.get_by_role('button', name='Send', exact=True).click()
    # The answer of the first task is on the page before it.
    page.wait_for_url(lambda url: first['id'] not in url)
    expect(page.get_by_text('echo: hello').first).to_be_visible()
    second = page.url.rsplit('/', 1)[1].split('?')[0]
    assert server.task(second)['contextId'] == first['contextId']


def frames_are_shown_in_each_dialect(stage):
    server = stage.server()
    task = server.send('hello')['id']
    page = _open(stage, server, task)
    # How many frames there are is known when the events are there.
    expect(page.get_by_label('Events', exact=True)).to_contain_text('Completed')
    page.get_by_role('button', name='Raw frames').click()
    raw = page.get_by_role('dialog', name='Raw frames')
    rest = json.loads(raw.locator('[data-dialect="rest10"][data-frame="2"] pre').inner_text())
    assert rest['statusUpdate']['status']['state'] == 'TASK_STATE_WORKING', rest
    old = json.loads(raw.locator('[data-dialect="rpc03"][data-frame="2"] pre').inner_text())
    assert old['result']['kind'] == 'status-update', old
    oldest = json.loads(raw.locator('[data-dialect="rpc01"][data-frame="2"] pre').inner_text())
    assert oldest['result']['status']['state'] == 'working', oldest
    page.keyboard.press('Escape')
    expect(raw).to_have_count(0)


def a_replay_begins_at_the_chosen_event(stage):
    server = stage.server()
    task = server.send('stream 20 0')['id']
    page = _open(stage, server, f'{task}?from=10')
    first = page.locator('[data-event]').first
    expect(first).to_be_visible()
    expect(first).to_have_attribute('data-event', '10')
    expect(page.get_by_label('Events', exact=True)).to_contain_text('chunk 20')


def a_request_is_copied_for_other_clients(stage):
    server = stage.server()
    task = server.send('hello')['id']
    page = _open(stage, server, task, permissions=['clipboard-read', 'clipboard-write'])
    for name, words in (('curl', 'curl '), ('Python', 'import '), ('JavaScript', 'fetch(')):
        page.get_by_text('Copy as').first.click()
        page.get_by_role('button', name=name).first.click()
        # Then it is in the clipboard, and the menu is closed.
        expect(page.locator('#announcer')).to_have_text(f'Copied as {name}')
        copied = page.evaluate('navigator.clipboard.readText()')
        assert words in copied and task in copied, copied


def a_file_is_previewed_and_downloaded_as_bytes(stage):
    server = stage.server()
    task = server.send('file')['id']
    page = _open(stage, server, task)
    expect(page.get_by_text('Hello file').first).to_be_visible()
    with page.expect_download() as downloading:
        page.get_by_role('button', name='Download output.txt').first.click()
    download = downloading.value
    assert download.suggested_filename == 'output.txt', download.suggested_filename
    assert open(download.path(), 'rb').read() == b'Hello file'


def a_hundred_thousand_events_open_at_their_end(stage):
    """Whatever lies before the end is not read."""
    server = stage.server()
    task = server.send('stream 100000 0')['id']
    page = stage.page(server)
    read = []
    page.on('request', lambda request: read.append(int(request.headers['last-event-id'])) if request.url.endswith(':subscribe') else None)
    page.locator(f'[data-task="{task}"]').click()
    expect(page.get_by_text('chunk 100000').first).to_be_visible()
    expect(page.get_by_label('Events', exact=True)).to_contain_text('Completed')
    # Where the page is short, what comes before is read until it is full, a step at a time.
    assert read[0] > 99_000 and min(read) > 95_000, read
    shown = page.locator('[data-window]').inner_text()
    assert re.search(r'–100,00\d of 100,00\d$', shown), shown


def a_window_shows_every_row_once(stage):
    """A task with far more rows than the page holds, from its end to its beginning and back."""
    server = stage.server(said={**PERMISSION, 'steps': STEPS})
    task = server.send('please', agent='asks')['id']
    page = _open(stage, server, task)
    expect(page.locator('.question')).to_be_visible()
    assert _steps(page)[-1] == STEPS
    while (first := _steps(page)[0]) > 1:
        page.evaluate('window.scrollTo(0, 0)')
        until(page, lambda first=first: _steps(page)[0] < first, f'steps before {first}')
    expect(page.get_by_label('Events', exact=True)).to_contain_text('Created')
    expect(page.get_by_role('button', name='Follow')).to_have_attribute('aria-pressed', 'false')
    while (last := _steps(page)[-1]) < STEPS:
        page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)')
        until(page, lambda last=last: _steps(page)[-1] > last, f'steps after {last}')
    expect(page.locator('.question')).to_be_visible()
    page.evaluate('window.scrollTo(0, 0)')
    until(page, lambda: _steps(page)[-1] < STEPS, 'the end is dropped')
    page.keyboard.press('f')
    expect(page.locator('.question')).to_be_visible()
    assert _steps(page)[-1] == STEPS
    wait_for(page, '() => innerHeight + scrollY >= document.documentElement.scrollHeight - 30')


def older_events_that_come_too_late_leave_no_gap(stage):
    """They were asked for by a window in the middle, and arrive when the page shows the end."""
    server = stage.server(said={**PERMISSION, 'steps': STEPS})
    task = server.send('please', agent='asks')['id']
    page = stage.page(server)
    held = []
    page.route('**/*:subscribe', lambda route: held.append(route) if int(route.request.headers['last-event-id']) < 400 else route.continue_())
    page.goto(f'{server.url}/console/tasks/{task}?from=401')
    until(page, lambda: _steps(page), 'steps')
    page.mouse.wheel(0, -300)
    until(page, lambda: held, 'older events are asked for')
    page.keyboard.press('f')
    expect(page.locator('.question')).to_be_visible()
    for route in held:
        route.continue_()
    until(page, lambda: not any(route.request in page.unanswered for route in held), 'they have arrived')
    settle(page)
    assert _steps(page)[-1] == STEPS


def _steps(page):
    """The numbers of the tool calls that are on the page: without a gap, and so few that a page can hold them."""
    briefs = page.evaluate("[...document.querySelectorAll('.event.tool .brief')].map((brief) => brief.textContent)")
    shown = [int(brief.removeprefix('step ').removesuffix('.')) for brief in briefs if brief.startswith('step ')]
    assert shown == list(range(shown[0], shown[-1] + 1)) if shown else True, shown
    assert page.locator('[data-event]').count() <= 450, page.locator('[data-event]').count()
    return shown


def what_one_reads_does_not_move(stage):
    server = stage.server()
    task = server.send('stream 100000 40', wait=False)['id']
    page = _open(stage, server, task, height=400)
    wait_for(page, '() => document.documentElement.scrollHeight > 1200')
    page.mouse.move(300, 200)
    page.mouse.wheel(0, -500)
    expect(page.get_by_role('button', name='Follow')).to_have_attribute('aria-pressed', 'false')
    # Scrolling may be smooth: it is over when nothing moves for a while.
    wait_for(
        page,
        '''() => {
            window.still = window.lastY === scrollY ? (window.still ?? 0) + 1 : 0;
            window.lastY = scrollY;
            return window.still >= 4;
        }''',
    )
    before = page.evaluate('window.scrollY')
    events = page.evaluate('document.documentElement.scrollHeight')
    wait_for(page, 'before => document.documentElement.scrollHeight > before + 100', events)
    assert abs(page.evaluate('window.scrollY') - before) <= 1
    page.get_by_role('button', name='Follow').click()
    wait_for(page, '() => innerHeight + scrollY >= document.documentElement.scrollHeight - 30')
    server.call(f'/tasks/{task}:cancel', {})


def an_unknown_task_is_said_to_be_unknown(stage):
    page = _open(stage, stage.server(), 'no-such-task')
    expect(page.get_by_role('heading', name='There is no such task')).to_be_visible()


def an_address_that_is_encoded_badly_is_an_unknown_task(stage):
    page = _open(stage, stage.server(), '%zz')
    expect(page.get_by_role('heading', name='There is no such task')).to_be_visible()


def every_dialect_has_its_frames(stage):
    server = stage.server()
    task = server.send('hello')['id']
    page = _open(stage, server, task)
    page.get_by_role('button', name='Raw frames').click()
    raw = page.get_by_role('dialog', name='Raw frames')
    boxes = raw.get_by_role('checkbox')
    expect(boxes).to_have_count(5)
    for box in boxes.all():
        box.check()
    for dialect, path in (('rest10', 'statusUpdate'), ('rest03', 'statusUpdate'), ('rpc10', 'result'), ('rpc03', 'result'), ('rpc01', 'result')):
        frame = raw.locator(f'[data-dialect="{dialect}"][data-frame="2"] pre')
        expect(frame).to_be_visible()
        assert path in json.loads(frame.inner_text()), dialect
    # Parts are called content in the HTTP+JSON of 0.3 only.
    created = raw.locator('[data-frame="1"] pre')
    assert ['"content"' in text for text in created.all_inner_texts()] == [False, True, False, False, False]


def a_text_of_very_many_lines_is_shown(stage):
    """More pieces than one call in a browser takes arguments."""
    server = stage.server()
    texts = {'text/x-diff': '\n' * 250_000 + '+the end', 'text/markdown': '`a`b' * 49_000 + ' the end', 'text/plain': '#\n' * 95_000 + 'the end'}
    for media_type, text in texts.items():
        task = server.send('', parts=[{'text': text, 'mediaType': media_type}])['id']
        page = _open(stage, server, task)
        expect(page.locator('.event.artifact')).to_contain_text('the end')
        expect(page.get_by_label('Events', exact=True)).to_contain_text('Completed')


def many_blocks_of_code_are_read_once(stage):
    """How often the lines of a text are looked at grows as the text does."""
    page = stage.page(stage.server())
    looks = page.evaluate(LOOKS_AT_LINES)
    assert looks[1] < 3 * looks[0], looks


LOOKS_AT_LINES = '''async () => {
    const { markdown } = await import('/console/assets/markdown.js');
    const split = String.prototype.split;
    const looks = (blocks) => {
        let count = 0;
        String.prototype.split = function (...given) {
            return new Proxy(split.apply(this, given), { get: (lines, name) => { count += 1; return lines[name]; } });
        };
        try { markdown('```\\nx\\n```\\n'.repeat(blocks)); } finally { String.prototype.split = split; }
        return count;
    };
    return [looks(500), looks(1000)];
}'''


def what_is_written_to_a_question_stays_when_another_comes(stage):
    """Words that go on being typed must not become keys of the page, which answer."""
    server = stage.server()
    task = server.send('ask Which day?')['id']
    page = _open(stage, server, task)
    field = page.locator('.question textarea')
    field.press_sequentially('any da')
    server.send('ask And which hour?', taskId=task)
    expect(page.get_by_label('Events', exact=True)).to_contain_text('And which hour?')
    page.keyboard.type('y')
    expect(field.first).to_have_value('any day')
    expect(field.first).to_be_focused()
    expect(page.locator('.question')).to_have_count(2)

"""Dark and light, wide and narrow."""

import re

from playwright.sync_api import expect

from stage import settle, wait_for


def _brightness(page, property):
    colour = page.evaluate(f'getComputedStyle(document.body).{property}')
    red, green, blue = (int(float(number)) for number in re.findall(r'[\d.]+', colour)[:3])
    return (red * 299 + green * 587 + blue * 114) / 1000


def the_system_decides_dark_or_light_and_the_switch_overrules_it(stage):
    server = stage.server()
    dark = stage.page(server, color_scheme='dark')
    assert _brightness(dark, 'backgroundColor') < 60 < _brightness(dark, 'color')
    light = stage.page(server, color_scheme='light')
    assert _brightness(light, 'backgroundColor') > 200 > _brightness(light, 'color')
    light.get_by_role('button', name='Theme').click()
    expect(light.locator('html')).to_have_attribute('data-theme', 'dark')
    assert _brightness(light, 'backgroundColor') < 60
    # It is remembered.
    light.reload()
    assert _brightness(light, 'backgroundColor') < 60


def words_have_enough_contrast(stage):
    server = stage.server()
    for words in ('hello', 'fail for a reason', 'ask Which day?', 'reject no'):
        server.send(words)
    server.send('slow 60', wait=False)
    for scheme in ('dark', 'light'):
        page = stage.page(server, color_scheme=scheme)
        expect(page.locator('[data-task]')).to_have_count(5)
        weak = page.evaluate(CONTRAST)
        assert not weak, f'{scheme}: {weak[:5]}'


# Text and what is behind it, by the formula of WCAG; 4.5 is AA.
CONTRAST = '''() => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
    const over = (layers) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of layers) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = ([red, green, blue]) => [red, green, blue].map((one) => one / 255)
        .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
        .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
    const weak = [];
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
        if (!words.length || !element.checkVisibility({ opacityProperty: true }) || element.closest('.unseen, [aria-hidden=true], .skip')) continue;
        const layers = [];
        for (let node = element; node; node = node.parentElement) layers.unshift(getComputedStyle(node).backgroundColor);
        const behind = over(['white', ...layers]);
        const front = over(['white', ...layers, getComputedStyle(element).color]);
        const [high, low] = [light(front), light(behind)].sort((a, b) => b - a);
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) weak.push(`${ratio.toFixed(2)} ${element.className}: ${words[0].textContent.trim().slice(0, 30)}`);
    }
    return weak;
}'''


def a_phone_shows_every_page_without_sideways_scrolling(stage):
    server = stage.server()
    task = server.send('please remove it', agent='asks')['id']
    server.send('x' * 500)
    for path in ('tasks', f'tasks/{task}', 'waiting', 'agents', 'agents/demo', 'deliveries', 'system'):
        page = stage.page(server, f'/console/{path}', width=375, height=700, has_touch=True, is_mobile=True)
        settle(page)
        width = page.evaluate('document.documentElement.scrollWidth')
        assert width <= 375, f'{path} is {width} px wide'
        # The navigation is at the bottom.
        box = page.get_by_role('navigation', name='Pages').bounding_box()
        assert box['y'] > 500, f'{path}: {box}'


def nothing_moves_where_that_is_unwanted(stage):
    server = stage.server()
    server.send('slow 60', wait=False)
    page = stage.page(server, reduced_motion='reduce')
    expect(page.locator('[data-task]')).to_have_count(1)
    moving = page.evaluate(
        'document.getAnimations().filter((one) => one.effect.getComputedTiming().duration > 1).map((one) => one.animationName)'
    )
    assert not moving, moving


def nothing_jumps_while_a_page_is_loading(stage):
    """Every shift counts: nobody has touched the page, whether it was opened by its address or by a link."""
    server = stage.server()
    for number in range(30):
        server.send(f'number {number}')
    asked = server.send('please remove it', agent='asks')['id']
    done = server.send('hello')['id']
    for path in ('tasks', f'tasks/{asked}', f'tasks/{done}', 'waiting', 'agents', 'agents/demo', 'deliveries', 'system'):
        page = stage.page(server, '/console/agents/asks')
        page.add_init_script(SHIFTS)
        page.goto(f'{server.url}/console/{path}')
        settle(page)
        shift = page.evaluate('window.shift')
        assert shift < 0.1, f'{path}: {shift}'
        page.goto(f'{server.url}/console/agents/asks')
        settle(page)
        # A link of the page, followed without an input of a person, which would excuse shifts.
        page.evaluate(FOLLOW, f'/console/{path}')
        wait_for(page, 'path => location.pathname === path && document.querySelector("#main h1, #main h2")', f'/console/{path}')
        settle(page)
        shift = page.evaluate('window.shift')
        assert shift < 0.1, f'{path} by a link: {shift}'


SHIFTS = '''window.shift = 0; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shift += entry.value; }).observe({ type: 'layout-shift', buffered: true });'''
FOLLOW = '''path => {
    const link = Object.assign(document.createElement('a'), { href: path });
    document.getElementById('announcer').append(link);
    window.shift = 0;
    link.click();
    link.remove();
}'''


def a_task_prints_without_navigation_and_buttons(stage):
    server = stage.server()
    task = server.send('hello')['id']
    page = stage.page(server, f'/console/tasks/{task}')
    expect(page.get_by_text('echo: hello').first).to_be_visible()
    page.emulate_media(media='print')
    expect(page.get_by_role('navigation', name='Pages')).to_be_hidden()
    expect(page.get_by_role('button', name='Raw frames')).to_be_hidden()
    expect(page.get_by_text('echo: hello').first).to_be_visible()

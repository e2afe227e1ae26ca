"""The agents."""

import os
import subprocess
import sys
from urllib.parse import quote

from playwright.sync_api import expect

from stage import PATIENCE, until, wait_for

WORDS = 'it\'s "quoted" $HOME `id` \\ !! %s 🙂 é\nand a second line'

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


def a_copied_message_is_sent_as_it_was_written(stage):
    """By each of the programs that it is copied for; a shell and three languages quote in their own ways."""
    server = stage.server()
    page = stage.page(server, '/console/agents/demo', permissions=['clipboard-read', 'clipboard-write'])
    runs = {
        'curl': lambda text: _run(server, 'bash', '-c', text),
        'Python': lambda text: _run(server, sys.executable, '-c', text),
        'JavaScript': lambda text: page.evaluate(f'async () => {{ {text} }}'),
    }
    page.get_by_label('Message to demo').fill(WORDS)
    for count, (name, run) in enumerate(runs.items(), 1):
        page.get_by_text('Copy as').first.click()
        page.get_by_role('button', name=name).first.click()
        expect(page.locator('#announcer')).to_have_text(f'Copied as {name}')
        run(page.evaluate('navigator.clipboard.readText()'))
        assert _sent(server) == [WORDS] * count, name


def a_copied_command_sends_what_was_written(stage):
    """No text becomes an option or the address of a server."""
    server = stage.server()
    page = stage.page(server, '/console/agents/demo', permissions=['clipboard-read', 'clipboard-write'])
    expected = []
    for words in (WORDS, '--help me', 'https://example.com/a?b=c what is this', 'A=b'):
        page.get_by_label('Message to demo').fill(words)
        # The clipboard is written after the click.
        page.evaluate("navigator.clipboard.writeText('')")
        page.get_by_role('button', name='Copy sabir send').click()
        command = until(page, lambda: page.evaluate('navigator.clipboard.readText()'), 'a command is copied')
        _run(server, 'bash', '-c', command)
        expected.insert(0, words)
        assert _sent(server) == expected, command


def a_copied_command_watches_the_task_whatever_its_id(stage):
    """Callers of 0.1 choose ids."""
    server = stage.server()
    for task in ('plain', '-v', '--help', "it's", 'http://example.com/x', 'a=b c'):
        message = {'role': 'user', 'parts': [{'type': 'text', 'text': f'hello {task}'}]}
        server.call('/', {'jsonrpc': '2.0', 'id': 1, 'method': 'tasks/send', 'params': {'id': task, 'message': message}}, version='0.1')
        page = stage.page(server, f'/console/tasks/{quote(task, safe="")}')
        command = page.get_by_label('Facts').locator('.command code').inner_text()
        assert command.startswith('sabir watch '), command
        assert f'echo: hello {task}' in _run(server, 'bash', '-c', command), command


def _run(server, *command):
    """What a program prints that a user has started with a copied text; `sabir` is the program of the server."""
    folder = server.folder / 'bin'
    folder.mkdir(exist_ok=True)
    if not (folder / 'sabir').exists():
        (folder / 'sabir').symlink_to(server.sabir)
    variables = {'PATH': f'{folder}:{os.environ["PATH"]}', 'HOME': str(server.folder), 'LANG': 'C.UTF-8'}
    if server.url not in command[-1]:
        variables['A2ACLI_AGENT_CARD'] = server.url
    done = subprocess.run(command, env=variables, cwd=server.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, (command, done)
    return done.stdout


def _sent(server):
    """The texts of all messages, the newest first."""
    tasks = server.call('/tasks?historyLength=5')['tasks']
    return [task['history'][0]['parts'][0]['text'] for task in tasks]

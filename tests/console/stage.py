"""What a case runs on: a real server with a database of its own, a client of its API, and pages of a real browser."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from playwright import sync_api

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'agents'))
import processes

HERE = pathlib.Path(__file__).resolve().parent
# For what happens at all, however busy the machine is. In seconds.
PATIENCE = 60
PERMISSION = {
    'text': 'Done. The folder **build** is gone.',
    'title': 'rm -rf build',
    'input': {'command': 'rm -rf build', 'description': 'Remove what was built'},
}


class Server:
    """A server that can be killed and started again at the same address, with the same database."""

    def __init__(self, sabir, said=PERMISSION, settings=''):
        self.sabir = sabir
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sabir-console-')).resolve()
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        self.token = None
        (self.folder / 'said.json').write_text(json.dumps(said))
        agent = [sys.executable, str(HERE / 'asking_agent.py'), str(self.folder / 'said.json')]
        (self.folder / 'sabir.toml').write_text(
            f'{settings}\n[[agent]]\nid = "demo"\nkind = "demo"\ndefault = true\n\n'
            f'[[agent]]\nid = "asks"\nkind = "acp"\ncommand = {json.dumps(agent)}\ndescription = "Asks first"\n'
        )
        self.start()

    def start(self):
        variables = {name: os.environ[name] for name in ('PATH', 'LANG', 'TMPDIR') if name in os.environ}
        store = f'sqlite:{self.folder / "tasks.db"}'
        self.child = subprocess.Popen(
            [self.sabir, 'serve', '--port', str(self.port), '--store', store, '--config', self.folder / 'sabir.toml'],
            cwd=self.folder,
            env={**variables, 'HOME': str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=open(self.folder / 'log', 'ab'),
        )
        line = processes.first_line(self.child, PATIENCE)
        assert line, f'the server does not start: {(self.folder / "log").read_text()[-2000:]}'

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(PATIENCE)

    def restart(self):
        self.kill()
        self.start()

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait(PATIENCE)
        processes.kill_all(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The API, as any client calls it.

    def call(self, path, body=None, method=None, version='1.0'):
        headers = {'A2A-Version': version, 'Content-Type': 'application/json'}
        if self.token:
            headers['Authorization'] = f'Bearer {self.token}'
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{path}: {error.code} {error.read().decode()[:500]}') from error

    def send(self, text, agent=None, wait=True, parts=None, **members):
        """The task that a message makes."""
        message = {'messageId': os.urandom(8).hex(), 'role': 'ROLE_USER', 'parts': parts or [{'text': text}], **members}
        body = {'message': message, 'configuration': {'returnImmediately': not wait}}
        prefix = f'/agents/{agent}' if agent else ''
        return self.call(f'{prefix}/message:send', body)['task']

    def task(self, task):
        return self.call(f'/tasks/{task}')

    def until(self, task, *states, seconds=PATIENCE):
        """Waits until the task is in one of these states, such as COMPLETED."""
        deadline = time.monotonic() + seconds
        while (now := self.task(task))['status']['state'].removeprefix('TASK_STATE_') not in states:
            assert time.monotonic() < deadline, f'task {task} stays {now["status"]["state"]}'
            time.sleep(0.05)
        return now


class Stage:
    """The server of a case, and its browser. What a page complains about in its console fails the case."""

    def __init__(self, browser, sabir, screenshots=None):
        self.browser, self.sabir, self.screenshots = browser, sabir, screenshots
        self.complaints = []
        self.contexts = []
        self.servers = []

    def server(self, **options):
        server = Server(self.sabir, **options)
        self.servers.append(server)
        return server

    def page(self, server, path='/console', width=1280, height=800, **options):
        """A page of a new browser profile."""
        context = self.browser.new_context(viewport={'width': width, 'height': height}, **options)
        context.set_default_timeout(PATIENCE * 1000)
        self.contexts.append(context)
        page = context.new_page()
        page.on('pageerror', lambda error: self.complaints.append(f'an error of the page: {error}'))
        page.on('console', lambda message: self._heard(message))
        page.on('dialog', lambda dialog: self._dialog(dialog))
        page.on('request', lambda request: self._requested(request, server))
        page.unanswered = set()
        page.on('request', lambda request: page.unanswered.add(request))
        page.on('requestfinished', lambda request: page.unanswered.discard(request))
        page.on('requestfailed', lambda request: page.unanswered.discard(request))
        page.goto(server.url + path)
        return page

    def screenshot(self, page, name):
        if self.screenshots:
            page.screenshot(path=self.screenshots / f'{name}.png')

    def _heard(self, message):
        # A server that was killed, a call that was refused: the browser says so itself.
        if message.type == 'error' and not message.text.startswith('Failed to load resource'):
            self.complaints.append(f'the console says: {message.text}')

    def _dialog(self, dialog):
        self.complaints.append(f'a dialog was opened: {dialog.message}')
        dialog.dismiss()

    def _requested(self, request, server):
        if not request.url.startswith((server.url, 'data:', 'blob:')):
            self.complaints.append(f'something was fetched from elsewhere: {request.url}')

    def close(self):
        for context in self.contexts:
            context.close()
        for server in self.servers:
            server.close()


def wait_for(page, expression, argument=None, seconds=PATIENCE):
    """Waits until the page finds it true. Playwright's own waiting evaluates text in the page, which its policy forbids."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression, argument):
        assert time.monotonic() < deadline, f'never true: {expression}'
        page.wait_for_timeout(50)


def until_answered(page):
    """Waits until the page has the answers to all that it has asked until now; streams stay open."""
    page.wait_for_timeout(50)
    asked = [request for request in list(page.unanswered) if request.headers.get('accept') != 'text/event-stream']
    deadline = time.monotonic() + PATIENCE
    while open_calls := page.unanswered.intersection(asked):
        assert time.monotonic() < deadline, f'never answered: {[request.url for request in open_calls]}'
        page.wait_for_timeout(50)


def until(page, condition, words):
    """Waits until `condition()` is true, while the page goes on."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f'never: {words}'
        page.wait_for_timeout(50)
    return found


def ready(card):
    """Focuses a question, and waits until it takes an answer: one that has just come or moved takes none."""
    card.focus()
    sync_api.expect(card.locator('.controls')).not_to_have_attribute('aria-disabled', 'true')


def settle(page):
    """Waits until nothing on the page is a placeholder any more, and nothing on it changes."""
    wait_for(page, '() => document.querySelector("#main h1, #main h2") && !document.querySelector(".skeletons")')
    # The events of a task have a placeholder of their own.
    wait_for(page, '() => document.querySelector("[data-window]")?.textContent !== "…" || document.querySelector(".failure")')
    until_answered(page)
    before, since = None, time.monotonic()
    deadline = since + PATIENCE
    while time.monotonic() < since + 0.2:
        assert time.monotonic() < deadline, 'the page changes all the time'
        now = page.evaluate('document.getElementById("main").innerHTML')
        if now != before:
            before, since = now, time.monotonic()
        page.wait_for_timeout(50)


def go_to(page, key, heading):
    """Goes to a page by its two keys. The console forgets the first after a moment, which may pass on a busy machine; then both are
    pressed again."""
    for _ in range(5):
        page.keyboard.press('g')
        page.keyboard.press(key)
        try:
            return heading.wait_for(timeout=5000)
        except sync_api.TimeoutError:
            continue
    sync_api.expect(heading).to_be_visible()


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]

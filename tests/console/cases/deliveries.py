"""Webhooks that have not arrived."""

import datetime
import socket

from playwright import sync_api
from playwright.sync_api import expect

SETTINGS = '[push]\nallow_hosts = ["127.0.0.1"]\n'


def a_webhook_that_fails_is_shown_retried_and_dropped(stage):
    server = stage.server(settings=SETTINGS)
    # Nobody listens there.
    with socket.socket() as closed:
        closed.bind(('127.0.0.1', 0))
        url = f'http://127.0.0.1:{closed.getsockname()[1]}/hook'
        body = {
            'message': {'messageId': 'm', 'role': 'ROLE_USER', 'parts': [{'text': 'hello'}]},
            'configuration': {'taskPushNotificationConfig': {'url': url}},
        }
        task = server.call('/message:send', body)['task']['id']
        page = stage.page(server, '/console/deliveries')
        receiver = page.locator(f'[data-receiver="{url}"]')
        expect(receiver).to_contain_text('1 pending')
        expect(receiver).to_contain_text('attempt')
        receiver.locator('summary').first.click()
        expect(receiver.get_by_role('link', name=task)).to_be_visible()
        receiver.get_by_role('button', name='Retry now').click()
        # An attempt that fails meanwhile draws the list anew, and the question is gone.
        for _ in range(20):
            try:
                receiver.get_by_role('button', name='Drop', exact=True).click(timeout=3000)
                receiver.get_by_role('button', name='Yes').click(timeout=3000)
                break
            except sync_api.TimeoutError:
                continue
        expect(page.get_by_role('heading', name='Nothing is waiting to be delivered')).to_be_visible()


def the_next_attempt_is_in_the_future(stage):
    server = stage.server()
    page = stage.page(server)
    soon = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=20, seconds=30)).isoformat()
    delivery = {'id': 'p1', 'state': 'pending', 'url': 'http://127.0.0.1:9/hook', 'attempts': 1, 'reason': 'refused', 'next': soon}
    page.route(
        f'{server.url}/admin/v1/deliveries?*',
        lambda route: route.fulfill(json={'deliveries': [delivery] if 'state=pending' in route.request.url else []}),
    )
    page.get_by_role('link', name='Deliveries').click()
    row = page.locator('.receiver summary')
    expect(row).to_contain_text('next in 20 m')
    # It is still so after times were written again.
    page.wait_for_timeout(6000)
    expect(row).to_contain_text('next in 20 m')

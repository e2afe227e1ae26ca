"""Webhooks that have not arrived."""

import socket

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
        receiver.get_by_role('button', name='Drop').click()
        receiver.get_by_role('button', name='Yes').click()
        expect(page.get_by_role('heading', name='Nothing is waiting to be delivered')).to_be_visible()

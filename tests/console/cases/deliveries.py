"""Webhooks that have not arrived."""

import datetime
import socket
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from stage import until

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
        receiver.get_by_role('button', name='Drop', exact=True).click()
        receiver.get_by_role('button', name='Yes, drop it').click()
        expect(page.get_by_role('heading', name='Nothing is waiting to be delivered')).to_be_visible()


def an_attempt_takes_no_focus_and_no_question(stage):
    """Deliveries are tried all the time, others come and go: what one does on the page goes on."""
    deliveries = [_delivery(number) for number in (2, 3)]
    page = _page_of(stage, deliveries)
    rows = page.locator('.receiver details')
    expect(rows).to_have_count(2)
    rows.nth(1).locator('summary').click()
    rows.nth(1).get_by_role('button', name='Drop', exact=True).click()
    sure = page.get_by_role('button', name='Yes, drop it')
    expect(sure).to_be_focused()
    node = rows.nth(1).element_handle()
    deliveries[1].update(attempts=7, reason='out of paper', sent=5)
    deliveries.pop(0)
    deliveries.append(_delivery(4))
    deliveries.insert(0, _delivery(1))
    expect(rows).to_have_count(3)
    expect(rows.nth(1).locator('summary')).to_contain_text('out of paper')
    expect(rows.nth(1).locator('summary')).to_contain_text('7 attempts')
    expect(rows.nth(1)).to_contain_text('The event it has to send (6)')
    expect(rows.nth(1).locator('dl')).to_contain_text('out of paper')
    expect(sure).to_be_focused()
    assert node.evaluate('(node, other) => node === other', rows.nth(1).element_handle())
    assert [row.split()[1] for row in rows.locator('summary').all_inner_texts()] == ['p1', 'p3', 'p4']
    deliveries.clear()
    expect(page.get_by_role('heading', name='Nothing is waiting to be delivered')).to_be_visible()


def counts_of_very_many_deliveries_do_not_lie(stage):
    deliveries = [_delivery(number) for number in range(1, 500)] + [_delivery(number, state='given-up') for number in range(1, 700)]
    page = _page_of(stage, deliveries)
    receiver = page.locator('.receiver header')
    expect(receiver).to_contain_text('499 pending, at least 500 dead')
    expect(page.get_by_role('button', name='Retry all dead')).to_be_visible()
    expect(page.get_by_text('There are more dead deliveries than are counted here')).to_be_visible()
    deliveries[:] = deliveries[:999]
    expect(receiver).to_contain_text('499 pending, 500 dead')
    expect(page.get_by_text('than are counted here')).to_be_hidden()
    deliveries[:] = [_delivery(number) for number in range(1, 502)]
    expect(receiver).to_contain_text('at least 500 pending, 0 dead')


def all_of_a_receiver_and_all_dead_ones_are_tried_again(stage):
    deliveries = [_delivery(1), _delivery(2, state='given-up'), _delivery(3, state='given-up', url='http://127.0.0.1:9/other')]
    page = _page_of(stage, deliveries)
    asked = []

    def retried(route):
        asked.append(urlsplit(route.request.url).query)
        route.fulfill(status=202, json={'retried': 1})

    page.route('**/admin/v1/deliveries/retry?*', retried)
    page.get_by_role('button', name='Retry all 2 dead').click()
    expect(page.locator('#announcer')).to_have_text('Retried')
    assert asked == ['state=given-up'], asked
    asked.clear()
    page.locator('[data-receiver$="/hook"]').get_by_role('button', name='Retry all').click()
    until(page, lambda: len(asked) == 2, 'both states are tried again')
    expected = [{'state': [state], 'url': ['http://127.0.0.1:9/hook']} for state in ('given-up', 'pending')]
    assert [parse_qs(query) for query in sorted(asked)] == expected, asked


def _delivery(number, state='pending', url='http://127.0.0.1:9/hook'):
    event = {'sent': 1} if state == 'pending' else {'event': 2}
    about = {'task': f't{number}', 'taskNumber': number, 'agent': 'demo', 'config': 'c', 'attempts': 1, 'reason': 'refused'}
    return {'id': f'{"p" if state == "pending" else "g"}{number}', 'state': state, 'url': url, **about, **event}


def _page_of(stage, deliveries):
    """A page over deliveries that change when the case changes them."""
    server = stage.server()
    page = stage.page(server)

    def answer(route):
        query = parse_qs(urlsplit(route.request.url).query)
        found = [one for one in deliveries if one['state'] == query['state'][0]]
        limit = int(query['limit'][0])
        page_of = found[:limit]
        route.fulfill(json={'deliveries': page_of, **({'after': int(page_of[-1]['id'][1:])} if len(page_of) == limit else {})})

    page.route(f'{server.url}/admin/v1/deliveries?*', answer)
    page.get_by_role('link', name='Deliveries').click()
    return page


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
    page.evaluate("() => import('/console/assets/format.js').then(({ growOlder }) => growOlder())")
    expect(row).to_contain_text('next in 20 m')

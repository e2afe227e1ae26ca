"""The tools of coding-agent-a2a, as its hosts use them: results are JSON in one text."""

import json

from stage import until, words


async def _call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error and len(result.content) == 1, result
    assert json.loads(words(result)) == result.structured_content, result
    return json.loads(words(result))


async def a_job_is_run_polled_and_read(stage):
    async with stage.client() as client:
        job = (await _call(client, 'coding_agent_run', task='stream 10 50', repoPath='/tmp', model='m', force=True))['job_id']
        events = []

        async def is_done():
            polled = await _call(client, 'coding_agent_poll', jobId=job, sinceLine=events[-1]['line'] if events else 0)
            events.extend(polled['events'])
            return polled['done']

        await until(is_done, 'the job is done')
        lines = [event['line'] for event in events]
        assert lines == sorted(set(lines)), lines
        states = [event['state'] for event in events if event['type'] == 'status']
        assert states[0] == 'submitted' and states[-1] == 'completed', states
        text = ''.join(event['text'] for event in events if event['type'] == 'text')
        assert text == ''.join(f'chunk {number}\n' for number in range(1, 11)), text
        # All of it at once is the same, and nothing is forgotten when it was read.
        again = await _call(client, 'coding_agent_poll', jobId=job)
        assert again == {'events': events, 'done': True}, again
        for _ in range(2):
            result = await _call(client, 'coding_agent_result', jobId=job)
            assert result['done'] and 'chunk 10' in result['summary'], result


async def a_job_is_cancelled(stage):
    async with stage.client() as client:
        job = (await _call(client, 'coding_agent_run', task='slow 50 never'))['job_id']
        assert not (await _call(client, 'coding_agent_result', jobId=job))['done']
        assert await _call(client, 'coding_agent_cancel', jobId=job) == {'cancelled': True}

        async def end():
            polled = await _call(client, 'coding_agent_poll', jobId=job)
            return polled['events'] if polled['done'] else None

        assert (await until(end, 'the job is done'))[-1]['state'] == 'canceled'


async def usage_is_in_the_result(stage):
    async with stage.client() as client:
        job = (await _call(client, 'coding_agent_run', task='usage 12 34'))['job_id']

        async def result():
            result = await _call(client, 'coding_agent_result', jobId=job)
            return result if result['done'] else None

        assert (await until(result, 'the job is done'))['stats'] == {'input_tokens': 12, 'output_tokens': 34}


async def a_job_is_a_task(stage):
    async with stage.client() as client:
        job = (await _call(client, 'coding_agent_run', task='hello'))['job_id']
        result = await client.call_tool('wait_task', {'task': job})
        assert words(result) == 'echo: hello', result


async def the_agent_tells_of_itself(stage):
    async with stage.client() as client:
        info = await _call(client, 'coding_agent_info')
    assert info['adapter'] == 'demo' and info['version'] and info['capabilities']['streaming'] is True, info

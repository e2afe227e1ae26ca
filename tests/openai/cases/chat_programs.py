"""What Open WebUI and LibreChat ask for beside the conversation, as they send it: no agent runs for it.

The prompts here are our own words around the marks by which these programs' prompts are recognised.
"""

import json

from stage import say

HISTORY = '<chat_history>\nUSER: How do I bake bread?\nASSISTANT: With flour.\n</chat_history>'


def _webui(task, output):
    return f'### Task:\n{task}\n\n### Guidelines:\n- Be short.\n\n### Output:\nJSON format: {output}\n\n### Chat History:\n{HISTORY}'


def _asked(stage, prompt, **options):
    before = stage.server.number_of_tasks()
    # As Open WebUI sends it: one message, not streamed, and with the headers of the connection.
    said = [say(stage.client(), prompt, context, max_tokens=1000, **options) for context in (None, 'webui')]
    assert said[0] == said[1], said
    assert stage.server.number_of_tasks() == before
    return said[0]


def open_webui_gets_a_title(stage):
    for example in ('{ "title": "your concise title here" }', '{ "title": "📉 Stock Trends" }'):
        said = _asked(stage, _webui('Generate a concise title for the chat.', example))
        assert json.loads(said) == {'title': 'How do I bake bread?'}, said


def open_webui_gets_its_lists(stage):
    for member, value in (('tags', ['General']), ('follow_ups', []), ('queries', [])):
        said = _asked(stage, _webui('Suggest some.', f'{{ "{member}": ["one", "two"] }}'))
        assert json.loads(said) == {member: value}, said


def open_webui_gets_no_completion_of_a_text(stage):
    prompt = (
        '### Task:\nYou are an autocompletion system. Continue the text.\n\n### Output:\n{ "text": "<completion>" }\n\n'
        f'### Context:\n{HISTORY}\n<type>General</type>\n<text>How do</text>\n#### Output:\n'
    )
    assert json.loads(_asked(stage, prompt)) == {'text': ''}


def librechat_gets_a_title(stage):
    prompt = (
        'Provide a concise, 5-word-or-less title for the conversation, using title case conventions. '
        'Only return the title itself.\n\nConversation:\nUser: plan a trip\nAI: gladly'
    )
    assert _asked(stage, prompt) == 'plan a trip'


def a_conversation_that_talks_of_titles_reaches_the_agent(stage):
    before = stage.server.number_of_tasks()
    assert say(stage.client(), 'Generate a title') == 'echo: Generate a title'
    assert stage.server.number_of_tasks() == before + 1

"""What becomes of the texts of agents: Markdown as elements, in a time that grows no faster than the text."""

import time

# A text, and what is made of it.
ROWS = [
    ('**a** __b__ *c* _d_ ~~e~~', '<p><strong>a</strong> <strong>b</strong> <em>c</em> <em>d</em> <s>e</s></p>'),
    ('**a *b* c** and ** d ** and **e', '<p><strong>a <em>b</em> c</strong> and ** d ** and **e</p>'),
    ('snake_case_name __init__ 2*3*4', '<p>snake_case_name <strong>init</strong> 2<em>3</em>4</p>'),
    ('`a*b*` ``c`d`` `e', '<p><code>a*b*</code> <code>c`d</code> `e</p>'),
    ('a\n\n```sh\n**b**\n\n```\nc', '<p>a</p><pre class="code"><code>**b**\n</code></pre><p>c</p>'),
    ('~~~\na\n```\n~~~', '<pre class="code"><code>a\n```</code></pre>'),
    ('## a # b ##\n# In C#', '<h4>a # b</h4><h3>In C#</h3>'),
    ('- a\n- [x] b\n  1. c', '<ul><li>a</li><li>☑ b<ol start="1"><li>c</li></ol></li></ul>'),
    ('> a\n> > b', '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>'),
    ('a\n\n---\nb', '<p>a</p><hr><p>b</p>'),
    (
        'a|b\n:-|-:\n1|`2`\n',
        '<div class="wide"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        '<tbody><tr><td>1</td><td><code>2</code></td></tr></tbody></table></div>',
    ),
    ('a|b\nno table', '<p>a|b\nno table</p>'),
    ('[a](javascript:x) ![p](data:x) <b>', '<p>[a](javascript:x) ![p](data:x) &lt;b&gt;</p>'),
]
OUTLINE = '''async (text) => {
    const { markdown } = await import(new URL('console/assets/markdown.js', location.origin).href);
    const made = markdown(text);
    for (const element of made.querySelectorAll('[class=""]')) element.removeAttribute('class');
    return made.innerHTML;
}'''

# Texts that are slow to read where a pattern tries the same letters in many ways, or looks again and again for an end that is not there.
# The letters are repeated; what is around them is there once.
SLOW = [
    ('```', ' ', '`'), ('', '~', '`'), ('-', ' ', 'a\u2028b'), ('- [ ]', ' ', 'a\u2028b'), ('# a', ' #', ' b'), ('#', ' ', 'a\u2028b'),
    ('a|b\n', '-|', 'x'), ('a|b\n-|', ' ', 'x'), ('', '**a ', ''), ('', '~~a **b ', ''), ('', '__a ', ''), ('', '_a ', ''), ('', '*a ', ''),
    ('', '` `` ``` ', ''), ('', '[', ''), ('', '[a](', ''), ('[a](', '(b)', ''), ('[a](b', ' ', ''), ('', '[a](b "', ''), ('http://', '.', ''),
    ('', '<http://a', ''), ('', '> ', ''), ('', '- ', ''), ('', '- a\n', ''), ('', '* * *a\n', ''), ('', ' \n', ''), ('a|b\n-|-\n', '|', ''),
]  # fmt: skip
LENGTH = 190_000
# Reading them takes far less even on a busy machine; what grows with the square of the text takes minutes.
MOST_SECONDS = 30
READ_ALL = '''async ([texts, seconds]) => {
    const { markdown } = await import(new URL('console/assets/markdown.js', location.origin).href);
    const begin = performance.now();
    for (const text of texts) {
        markdown(text);
        if (performance.now() - begin > seconds * 1000) return `too slow: ${JSON.stringify(text.slice(0, 20))}`;
    }
    return 'done';
}'''


def markdown_becomes_elements(stage):
    page = stage.page(stage.server())
    for text, expected in ROWS:
        made = page.evaluate(OUTLINE, text)
        assert made == expected, f'{text!r} became {made}'


def no_text_keeps_a_browser_busy(stage):
    page = stage.page(stage.server())
    texts = [before + letters * (LENGTH // len(letters)) + after for before, letters, after in SLOW]
    outcome = page.evaluate(READ_ALL, [texts, MOST_SECONDS])
    assert outcome == 'done', outcome


def a_table_of_many_columns_is_cut_and_nothing_is_lost(stage):
    page = stage.page(stage.server())
    columns = '|'.join(f'c{number}' for number in range(300))
    made = page.evaluate(OUTLINE, f'{columns}\n{"-|" * 299}-\n')
    assert made.count('<th ') == 100, made.count('<th ')
    assert all(f'c{number}' in made for number in range(300)), made


# A stream that comes in small pieces: some frames, one that is very large, and ends of frames between two pieces.
READ_FRAMES = '''async ([large, size]) => {
    const { frames } = await import(new URL('console/assets/api.js', location.origin).href);
    const text = `id: 1\\ndata: a\\n\\nid: 2\\ndata: ${'x'.repeat(large)}\\n\\nid: 3\\ndata: b\\n\\n`;
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    const body = new ReadableStream({ pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.subarray(at, at += size));
    } });
    window.fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const found = [];
    for await (const { id, data } of frames({ id: 't' }, 0, new AbortController().signal)) found.push(`${id}:${data.length}`);
    return found.join(' ');
}'''


def a_large_frame_is_read_in_a_time_that_grows_no_faster(stage):
    server = stage.server()
    for large, size in [(30_000_000, 4000), (5, 1), (5, 2), (5, 3)]:
        page = stage.page(server)
        begin = time.monotonic()
        found = page.evaluate(READ_FRAMES, [large, size])
        assert found == f'1:1 2:{large} 3:1', f'in pieces of {size}: {found[:100]}'
        assert time.monotonic() - begin < MOST_SECONDS, f'it took {time.monotonic() - begin:.0f} s'

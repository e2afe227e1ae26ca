//! The page for people who open the server's address in a browser: what this is, and where to go.

use http::request::Parts;
use http::{HeaderValue, Method, Response, header};
use sabir_engine::Engine;

use crate::body::Body;
use crate::console::Console;

/// Whether a browser asks for a page. Clients of the protocol ask for JSON, or do not say.
pub(crate) fn is_wanted(parts: &Parts) -> bool {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|accept| accept.contains("text/html"));
    parts.uri.path() == "/"
        && (parts.method == Method::GET || parts.method == Method::HEAD)
        && parts.headers.get_all(header::ACCEPT).iter().any(accepts)
}

pub(crate) fn page(engine: &Engine, console: Console) -> Response<Body> {
    let default = engine.default_agent();
    let mut agents = String::new();
    for agent in engine.agents().filter(|agent| agent.is_listed) {
        let (id, about) = (escaped(agent.id.as_str()), agent.about());
        let is_default = if Some(&agent.id) == default { " (messages that name no agent go here)" } else { "" };
        agents += &format!(
            "<li><a href=\"agents/{id}/.well-known/agent-card.json\">{}</a>{is_default}<br>{}</li>\n",
            escaped(&about.name),
            escaped(&about.description)
        );
    }
    let console = match console {
        Console::Served => {
            "<li><a href=\"console\">The console</a>: tasks as they run, questions to answer, agents to try.</li>\n"
        }
        Console::Off => "",
    };
    let page = PAGE.replace("CONSOLE", console).replace("AGENTS", &agents);
    let mut response = Response::new(Body::from(page.into_bytes()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// The page has no script, and loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sabir</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }
li { margin-bottom: .75rem }
</style>
<h1>Sabir</h1>
<p>This is a server for AI agents. Other agents and programs call it by the A2A (Agent2Agent) protocol. Its agents:</p>
<ul>
AGENTS</ul>
<ul>
CONSOLE<li><a href=".well-known/agent-card.json">The card of this server</a>: what clients read first.</li>
<li><a href="readyz">Whether it can take work.</a></li>
</ul>
</html>
"#;

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn browsers_get_the_page_and_clients_do_not() {
        for (verb, path, accept, expected) in [
            ("GET", "/", Some("text/html,application/xhtml+xml,*/*;q=0.8"), true),
            ("HEAD", "/", Some("text/html"), true),
            ("GET", "/", Some("*/*"), false),
            ("GET", "/", Some("application/json"), false),
            ("GET", "/", None, false),
            ("POST", "/", Some("text/html"), false),
            ("GET", "/tasks", Some("text/html"), false),
        ] {
            let mut request = Request::builder().method(verb).uri(path);
            if let Some(accept) = accept {
                request = request.header("accept", accept);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(is_wanted(&parts), expected, "{verb} {path} {accept:?}");
        }
    }

    #[test]
    fn names_of_agents_are_text() {
        assert_eq!(escaped(r#"<b a="1" b='2'>&"#), "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;");
    }
}

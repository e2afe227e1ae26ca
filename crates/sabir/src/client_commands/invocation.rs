//! Commands that a person can type next: `sabir watch URL TASK`, with the same server as the command that prints it.
//! Credentials are never in them.

use sabir_wire::Binding;

use crate::cli::{ProtocolOptions, ServerName};
use crate::terminal_text::visible;

/// How the server was named.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    url: Option<String>,
    flags: Vec<String>,
}

impl Invocation {
    pub fn new(url: Option<&str>, server: &ServerName, protocol: &ProtocolOptions) -> Self {
        let mut flags = Vec::new();
        let mut flag = |name: &str, value: Option<&str>| {
            flags.extend(value.map(|value| [name.to_owned(), value.to_owned()]).into_iter().flatten());
        };
        flag("--agent-card", server.agent_card.as_deref());
        flag("--agent", server.agent.as_deref());
        flag("--config", server.config.as_deref().and_then(|file| file.to_str()));
        flag("--a2a-version", protocol.a2a_version.map(|version| version.number()));
        for binding in &protocol.transport {
            let name = match binding {
                Binding::JsonRpc => "jsonrpc",
                Binding::HttpJson => "http+json",
                Binding::Grpc => "grpc",
            };
            flag("--transport", Some(name));
        }
        flag("--card-url", protocol.card_url.as_deref());
        flag("--endpoint", protocol.endpoint.as_deref());
        flag("--tenant", protocol.tenant.as_deref());
        Invocation { url: url.map(str::to_owned), flags }
    }

    /// `sabir VERB URL TASK MORE --flags`; `more` is written as it is.
    pub fn command(&self, verb: &str, task: &str, more: &str) -> String {
        let words = [self.url.as_deref(), Some(task)].into_iter().flatten().map(quoted);
        let more = Some(more.to_owned()).filter(|more| !more.is_empty());
        let words: Vec<String> = words.chain(more).collect();
        let flags: Vec<String> = self.flags.iter().map(|word| quoted(word)).collect();
        let mut command = vec!["sabir".to_owned(), quoted(verb)];
        // A server may give a task the name of a flag.
        if task.starts_with('-') {
            command.extend(flags);
            command.push("--".to_owned());
            command.extend(words);
        } else {
            command.extend(words);
            command.extend(flags);
        }
        visible(&command.join(" "))
    }
}

/// As a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::ProtocolVersion;

    use super::*;

    #[test]
    fn the_next_command_asks_the_same_server() {
        let server = ServerName { bearer: Some("secret".into()), agent: Some("coder".into()), ..ServerName::default() };
        let protocol = ProtocolOptions {
            a2a_version: Some(ProtocolVersion::V0_3),
            transport: vec![Binding::HttpJson, Binding::JsonRpc],
            ..ProtocolOptions::default()
        };
        for (url, task, expected) in [
            (None, "t1", "sabir watch t1 --agent coder --a2a-version 0.3 --transport http+json --transport jsonrpc"),
            (
                Some("http://a:7/x"),
                "it's; a task",
                "sabir watch http://a:7/x 'it'\\''s; a task' --agent coder --a2a-version 0.3 --transport http+json \
                 --transport jsonrpc",
            ),
        ] {
            assert_eq!(Invocation::new(url, &server, &protocol).command("watch", task, ""), expected);
        }
        let server = ServerName { agent: Some("a".into()), ..ServerName::default() };
        let named = Invocation::new(Some("http://a/"), &server, &ProtocolOptions::default());
        for (task, expected) in [
            ("--x;touch y", "sabir answer --agent a -- http://a/ '--x;touch y' '...'"),
            ("--endpoint=http://b/", "sabir answer --agent a -- http://a/ --endpoint=http://b/ '...'"),
            ("-v", "sabir answer --agent a -- http://a/ -v '...'"),
        ] {
            assert_eq!(named.command("answer", task, "'...'"), expected);
        }
        let plain = Invocation::default();
        assert_eq!(plain.command("answer", "t", "'...'"), "sabir answer t '...'");
    }
}

//! The `[[agent]]` table of a remote agent, as it is written into `sabir.toml`.

use sabir_model::{Card, SecurityKind, SecurityScheme};
use sabir_outbound::Target;
use sabir_outbound::remote::Discovered;

use crate::config::RemoteConfig;
use crate::toml_text::{comment, string};

pub fn table(found: &Discovered, config: &RemoteConfig, id: &str) -> String {
    let mut lines = Lines::default();
    // The file that it is added to may not end with a line break.
    lines.line("");
    if let Some(fetched) = &found.card {
        let Card { name, version, description, .. } = &fetched.card;
        lines.comment(&format!("{name} {version}"));
        if !description.is_empty() {
            lines.comment(description);
        }
        lines.comment(&format!("From {}; it speaks A2A {}.", fetched.url, found.endpoint.protocol));
    }
    lines.line("[[agent]]");
    lines.text("id", id);
    lines.text("kind", "a2a");
    lines.text("url", config.url.as_deref().unwrap_or_default());
    if let Some(url) = &config.card_url {
        lines.text("card_url", url);
    }
    lines.endpoint(found, config);
    if let Some(version) = config.version {
        lines.text("a2a_version", version.number());
    }
    let transports: Vec<String> = config.transports.iter().map(|binding| binding.name().to_ascii_lowercase()).collect();
    if !transports.is_empty() {
        lines.line(&format!("transports = {}", list(transports.iter())));
    }
    if let Some(fetched) = &found.card {
        lines.credentials(&fetched.card, id);
    }
    if !config.upstream.headers.is_empty() {
        lines.comment("The headers that were given on the command line, whose values are not repeated:");
        let names = config.upstream.headers.iter().map(|(name, _)| format!("{} = \"...\"", string(name)));
        lines.line(&format!("#headers = {{ {} }}", names.collect::<Vec<_>>().join(", ")));
    }
    lines.0
}

/// `#key = value` is a setting to switch on, `# words` is a comment, as in the example file.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, line: &str) {
        self.0 += line;
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        self.line(format!("# {}", comment(text)).trim_end());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", string(value)));
    }

    fn off(&mut self, key: &str, value: &str) {
        self.line(&format!("#{key} = {}", string(value)));
    }

    /// Where calls go, if the card alone does not say it.
    fn endpoint(&mut self, found: &Discovered, config: &RemoteConfig) {
        let url = &found.endpoint.url;
        if let Some(endpoint) = &config.endpoint {
            self.text("endpoint", endpoint);
        } else if let Some(named) = &found.replaced {
            self.comment(&format!("The card says {named}, which cannot be right from here."));
            self.text("endpoint", url);
        } else if asks_for_credentials(found) && !is_of_operator(url, config) {
            self.comment("The card leads calls to another server. It is shown no credential unless you name it here:");
            self.off("endpoint", url);
        }
    }

    /// What the card asks for, each by the settings that it needs.
    fn credentials(&mut self, card: &Card, id: &str) {
        if card.security_schemes.is_empty() {
            return;
        }
        let together = card.security.iter().any(|enough| enough.schemes.len() > 1);
        let words = match (together, card.security_schemes.len()) {
            (true, _) => "The card asks for several credentials at once. One can be set as such, others as headers:",
            (false, 1) => "What the card asks for:",
            (false, _) => "Any of these should do; use one:",
        };
        self.line("");
        self.comment(words);
        for (name, scheme) in &card.security_schemes {
            let required = card.security.iter().flat_map(|enough| &enough.schemes).filter(|(known, _)| known == name);
            let mut scopes: Vec<&String> = required.flat_map(|(_, scopes)| scopes).collect();
            scopes.dedup();
            self.scheme(name, scheme, &scopes, id);
        }
    }

    fn scheme(&mut self, name: &str, scheme: &SecurityScheme, scopes: &[&String], id: &str) {
        let what = scheme.description.as_deref().unwrap_or_default();
        let title = |kind: &str| format!("{name}: {kind}. {what}");
        match &scheme.kind {
            SecurityKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => {
                self.comment(&title("a bearer token"));
                self.off("token_env", &variable(id, "TOKEN"));
            }
            SecurityKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("basic") => {
                self.comment(&title("user and password"));
                self.off("user", "...");
                self.off("password_env", &variable(id, "PASSWORD"));
            }
            SecurityKind::Http { scheme, .. } => {
                self.comment(&title(&format!("HTTP {scheme}, which Sabir cannot show")));
            }
            SecurityKind::ApiKey { location, name: key } => {
                self.comment(&title("an API key"));
                self.off("api_key_env", &variable(id, "API_KEY"));
                self.off("api_key_name", key);
                self.off("api_key_in", location);
            }
            SecurityKind::OAuth2 { flows, .. } => {
                let machine = flows.iter().find(|flow| flow.name == "clientCredentials");
                match machine.and_then(|flow| Some((flow, flow.token_url.as_deref()?))) {
                    Some((flow, url)) => {
                        self.comment(&title("OAuth 2; the secret is sent to this token endpoint, so look at it first"));
                        let all: Vec<&String> = flow.scopes.iter().map(|(scope, _)| scope).collect();
                        self.client(url, if scopes.is_empty() { &all } else { scopes }, id);
                    }
                    None => {
                        let flows: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
                        self.comment(&title(&format!("OAuth 2 {}, by which a person gets a token", flows.join(", "))));
                        self.off("token_env", &variable(id, "TOKEN"));
                    }
                }
            }
            SecurityKind::OpenIdConnect { url } => {
                self.comment(&title(&format!("OpenID Connect; {url} has the token endpoint")));
                self.client("...", scopes, id);
            }
            SecurityKind::MutualTls => {
                self.comment(&title("a certificate"));
                self.off("client_certificate", &format!("{id}.pem"));
                self.off("client_key", &format!("{id}-key.pem"));
            }
        }
    }

    /// A client of a token endpoint.
    fn client(&mut self, token_url: &str, scopes: &[&String], id: &str) {
        self.off("oauth_token_url", token_url);
        self.off("oauth_client_id", "...");
        self.off("oauth_client_secret_env", &variable(id, "CLIENT_SECRET"));
        if !scopes.is_empty() {
            self.line(&format!("#oauth_scopes = {}", list(scopes.iter())));
        }
    }
}

fn list(texts: impl Iterator<Item = impl AsRef<str>>) -> String {
    format!("[{}]", texts.map(|text| string(text.as_ref())).collect::<Vec<_>>().join(", "))
}

/// `HARBOUR_DESK_TOKEN` for the agent `harbour-desk`.
fn variable(id: &str, suffix: &str) -> String {
    let name: String = id.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    // No shell sets a name that begins with a digit.
    let prefix = if name.starts_with(|first: char| first.is_ascii_digit()) { "AGENT_" } else { "" };
    format!("{prefix}{}_{suffix}", name.to_ascii_uppercase())
}

fn asks_for_credentials(found: &Discovered) -> bool {
    found.card.as_ref().is_some_and(|fetched| !fetched.card.security_schemes.is_empty())
}

/// Whether the operator wrote this server, so that it may see credentials.
fn is_of_operator(url: &str, config: &RemoteConfig) -> bool {
    let origin = |url: &str| Target::parse(url).ok().map(|target| (target.scheme, target.host, target.port));
    let written = [&config.url, &config.card_url].into_iter().flatten();
    written.into_iter().any(|known| origin(known) == origin(url))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sabir_model::{Flow, Requirement};
    use sabir_outbound::cards::FetchedCard;
    use sabir_outbound::remote::Endpoint;
    use sabir_outbound::{Binding, PeerProtocol, ProtocolVersion};

    use super::*;
    use crate::config::Secret;

    const URL: &str = "https://a.example";

    fn found(card: Card) -> Discovered {
        let url = format!("{URL}/.well-known/agent-card.json");
        let fetched = FetchedCard { url, text: String::new(), card, faults: Vec::new() };
        let protocol = PeerProtocol::new(ProtocolVersion::V1_0, Binding::JsonRpc).unwrap();
        let endpoint = Endpoint { url: format!("{URL}/rpc"), protocol, tenant: None };
        Discovered { card: Some(Arc::new(fetched)), endpoint, replaced: None, notes: Vec::new() }
    }

    fn named(name: &str) -> Card {
        Card { name: name.to_owned(), version: "2.3".to_owned(), ..Card::default() }
    }

    fn asking(name: &str, kind: SecurityKind, scopes: &[&str]) -> Card {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Card {
            security_schemes: vec![(name.to_owned(), SecurityScheme { description: None, kind })],
            security: vec![Requirement { schemes: vec![(name.to_owned(), scopes)] }],
            ..named("Desk")
        }
    }

    fn config() -> RemoteConfig {
        RemoteConfig { url: Some(URL.to_owned()), ..RemoteConfig::default() }
    }

    /// What follows the address.
    fn rest(found: &Discovered, config: &RemoteConfig) -> String {
        let text = table(found, config, "desk");
        assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
        let url = format!("url = \"{URL}\"\n");
        text.split_once(&url).map(|(_, rest)| rest.trim().to_owned()).unwrap_or(text)
    }

    #[test]
    fn a_card_that_is_right_needs_an_address_alone() {
        let card = Card { description: "Answers\nquestions".to_owned(), ..named("Harbour Desk") };
        let expected = "\n# Harbour Desk 2.3\n# Answers questions\n\
                        # From https://a.example/.well-known/agent-card.json; it speaks A2A 1.0 over JSONRPC.\n\
                        [[agent]]\nid = \"harbour-desk\"\nkind = \"a2a\"\nurl = \"https://a.example\"\n";
        assert_eq!(table(&found(card), &config(), "harbour-desk"), expected);
    }

    #[test]
    fn what_the_card_alone_does_not_say_is_written() {
        let bearer = || SecurityKind::Http { scheme: "Bearer".to_owned(), bearer_format: None };
        let replaced = Discovered { replaced: Some("http://localhost:9999/\"\n".to_owned()), ..found(named("x")) };
        let elsewhere = |card| {
            let mut found = found(card);
            found.endpoint.url = "https://b.example/".to_owned();
            found
        };
        let flags = RemoteConfig {
            card_url: Some("https://a.example/card.json".to_owned()),
            endpoint: Some("https://c.example/".to_owned()),
            version: Some(ProtocolVersion::V0_3),
            transports: vec![Binding::HttpJson, Binding::JsonRpc],
            ..config()
        };
        let mut headers = config();
        headers.upstream.headers = vec![("X \"y".to_owned(), Secret::new("secret"))];
        for (found, config, expected) in [
            (
                replaced,
                config(),
                "# The card says http://localhost:9999/\" , which cannot be right from here.\nendpoint = \"https://a.example/rpc\"",
            ),
            (elsewhere(named("x")), config(), ""),
            (
                elsewhere(asking("bearer", bearer(), &[])),
                config(),
                "# The card leads calls to another server. It is shown no credential unless you name it here:\n\
                 #endpoint = \"https://b.example/\"\n\n\
                 # What the card asks for:\n# bearer: a bearer token.\n#token_env = \"DESK_TOKEN\"",
            ),
            (
                found(named("x")),
                flags,
                "card_url = \"https://a.example/card.json\"\nendpoint = \"https://c.example/\"\na2a_version = \"0.3\"\n\
                 transports = [\"http+json\", \"jsonrpc\"]",
            ),
            (
                found(named("x")),
                headers,
                "# The headers that were given on the command line, whose values are not repeated:\n\
                 #headers = { \"X \\\"y\" = \"...\" }",
            ),
        ] {
            assert_eq!(rest(&found, &config), expected);
        }
    }

    #[test]
    fn each_credential_has_its_settings() {
        let text = str::to_owned;
        let flow = |name: &str| Flow {
            name: text(name),
            authorization_url: None,
            device_authorization_url: None,
            token_url: Some(text("https://i.example/token")),
            refresh_url: None,
            scopes: vec![(text("read"), text("reads")), (text("run"), text("runs"))],
            pkce_required: false,
        };
        let http = |scheme: &str| SecurityKind::Http { scheme: text(scheme), bearer_format: None };
        let key = |location: &str| SecurityKind::ApiKey { location: text(location), name: text("X-Key") };
        let oauth = |flows: Vec<Flow>| SecurityKind::OAuth2 { flows, metadata_url: None };
        let client = "#oauth_client_id = \"...\"\n#oauth_client_secret_env = \"DESK_CLIENT_SECRET\"";
        let look = "OAuth 2; the secret is sent to this token endpoint, so look at it first.";
        for (kind, scopes, expected) in [
            (http("bearer"), &[][..], text("a bearer token.\n#token_env = \"DESK_TOKEN\"")),
            (http("Basic"), &[], text("user and password.\n#user = \"...\"\n#password_env = \"DESK_PASSWORD\"")),
            (http("Digest"), &[], text("HTTP Digest, which Sabir cannot show.")),
            (
                key("query"),
                &[],
                text(
                    "an API key.\n#api_key_env = \"DESK_API_KEY\"\n#api_key_name = \"X-Key\"\n#api_key_in = \"query\"",
                ),
            ),
            (
                oauth(vec![flow("authorizationCode"), flow("clientCredentials")]),
                &["run"],
                format!("{look}\n#oauth_token_url = \"https://i.example/token\"\n{client}\n#oauth_scopes = [\"run\"]"),
            ),
            (
                oauth(vec![flow("clientCredentials")]),
                &[],
                format!(
                    "{look}\n#oauth_token_url = \"https://i.example/token\"\n{client}\n#oauth_scopes = [\"read\", \"run\"]"
                ),
            ),
            (
                oauth(vec![flow("authorizationCode"), flow("deviceCode")]),
                &[],
                text(
                    "OAuth 2 authorizationCode, deviceCode, by which a person gets a token.\n#token_env = \"DESK_TOKEN\"",
                ),
            ),
            (
                SecurityKind::OpenIdConnect { url: text("https://i.example/x") },
                &[],
                format!(
                    "OpenID Connect; https://i.example/x has the token endpoint.\n#oauth_token_url = \"...\"\n{client}"
                ),
            ),
            (
                SecurityKind::MutualTls,
                &[],
                text("a certificate.\n#client_certificate = \"desk.pem\"\n#client_key = \"desk-key.pem\""),
            ),
        ] {
            let written = rest(&found(asking("s", kind, scopes)), &config());
            assert_eq!(written, format!("# What the card asks for:\n# s: {expected}"));
        }
        let both = Requirement { schemes: vec![(text("a"), Vec::new()), (text("b"), Vec::new())] };
        let scheme = |kind| SecurityScheme { description: Some(text("Ask\nus")), kind };
        let schemes = vec![(text("a"), scheme(http("bearer"))), (text("b"), scheme(key("header")))];
        for (security, expected) in [
            (
                vec![both],
                "# The card asks for several credentials at once. One can be set as such, others as headers:\n",
            ),
            (Vec::new(), "# Any of these should do; use one:\n# a: a bearer token. Ask us\n"),
        ] {
            let card = Card { security_schemes: schemes.clone(), security, ..named("x") };
            let written = rest(&found(card), &config());
            assert!(written.starts_with(expected), "{written}");
        }
        assert_eq!(variable("7-up.b", "TOKEN"), "AGENT_7_UP_B_TOKEN");
    }
}

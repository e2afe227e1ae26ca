//! Settings of agents that stand for remote ones (`kind = "a2a"`).

use sabir_outbound::{Binding, ProtocolVersion, Target};

use super::origin::{Configured, Problem, ValueOrigin};
use super::sections::AgentConfig;
use super::settings::{ForWhom, Setting};
use super::upstream_credentials::{self, upstream_settings};
use super::values::*;

type Row = Setting<AgentConfig>;

/// The keys that only such an agent has.
pub fn remote_settings() -> Vec<Row> {
    let rows = vec![
        Row::new("url", "", optional(remote_url()), |agent| &mut agent.remote.url).help(
            "Where the remote agent is: its server, or its card. Its host and port are trusted, also if they are not \
             public.",
        ),
        Row::new("card_url", "", optional(remote_url()), |agent| &mut agent.remote.card_url)
            .help("Where its card is, if it is not at a well-known path below `url`."),
        Row::new("endpoint", "", optional(remote_url()), |agent| &mut agent.remote.endpoint)
            .help("Where calls go, instead of where its card says. For cards that name `localhost` or a wrong address."),
        Row::new("a2a_version", "", optional(version()), |agent| &mut agent.remote.version)
            .help("The protocol version to speak to it, instead of the newest that its card names: `1.0`, `0.3`, `0.2` or `0.1`."),
        Row::new("transports", "", list(transport()), |agent| &mut agent.remote.transports)
            .help("The bindings to use, best first, instead of the order of its card: `jsonrpc`, `http+json`."),
        Row::new("tenant", "", optional(text()), |agent| &mut agent.remote.tenant)
            .help("The tenant to name in calls, instead of the one that its card names."),
        Row::new("card_refresh", "5m", interval(), |agent| &mut agent.remote.card_refresh)
            .help("How often its card is fetched again."),
        Row::new("unreachable_timeout", "5m", interval(), |agent| &mut agent.remote.unreachable_timeout)
            .help("A task fails when the remote agent could not be reached for this long."),
    ];
    let rows = rows.into_iter().map(|row| row.only_for(ForWhom::Remotes));
    rows.chain(upstream_settings().into_iter().map(|row| row.only_for(ForWhom::RemotesAndOpenAi))).collect()
}

/// What is wrong with such an agent.
pub fn check(agent: &Configured<AgentConfig>) -> Vec<Problem> {
    let origin = &agent.value("kind").origin;
    match (&agent.subject.remote.url, origin) {
        (Some(_), _) => return upstream_credentials::check(agent),
        // The address of `sabir proxy` has been complained of.
        (None, ValueOrigin::Flag(_)) => return Vec::new(),
        (None, _) => {}
    }
    let words =
        "is \"a2a\", which needs the address of the remote agent; add url = \"https://...\", or use `sabir proxy URL`";
    vec![Problem::of(origin, "kind", words)]
}

pub fn remote_url() -> ValueKind<String> {
    let expected = "an absolute address without user, such as \"https://agents.example.com\"";
    ValueKind::of_text(expected, |text| Target::parse(text).is_ok().then(|| text.to_owned()))
}

fn version() -> ValueKind<ProtocolVersion> {
    choice(&ProtocolVersion::ALL.map(|version| (version.number(), version)))
}

fn transport() -> ValueKind<Binding> {
    choice(&[("jsonrpc", Binding::JsonRpc), ("http+json", Binding::HttpJson), ("grpc", Binding::Grpc)])
        .called("jsonrpc, http+json or grpc")
}

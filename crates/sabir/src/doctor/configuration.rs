//! The configuration: whether it is understood, and whether its settings fit together.

use crate::config::{Config, Problems};

use super::Subject;
use super::finding::{Area, Finding, Level};

const AREA: Area = Area::Configuration;

/// Of a configuration that cannot be read. Nothing else can be checked then.
pub fn unreadable(problems: &[String]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        problems.iter().map(|problem| Finding::of_words(AREA, Level::Problem, problem)).collect();
    for finding in findings.iter_mut().filter(|finding| finding.next.is_empty()) {
        finding.next =
            "correct it; docs/reference/settings.md and `sabir config --schema` have all settings".to_owned();
    }
    findings.push(Finding::warning(
        AREA,
        "store, agents, ports, limits and certificates were not looked at, since the configuration cannot be read",
        "correct it first, then run this again",
    ));
    findings
}

pub fn check(subject: &Subject) -> Vec<Finding> {
    let loaded = &subject.loaded;
    let mut findings: Vec<Finding> =
        loaded.warnings.iter().map(|warning| Finding::of_words(AREA, Level::Warning, warning)).collect();
    // What the files of TLS and the machine lack is told elsewhere.
    for refused in [loaded.check_exposure(), loaded.check_store()] {
        let Err(Problems(problems)) = refused else { continue };
        findings.extend(problems.iter().map(|problem| Finding::of_words(AREA, Level::Problem, problem)));
    }
    findings.extend(contradictions(&loaded.config));
    if !findings.iter().any(|finding| finding.level == Level::Problem) {
        let agents = loaded.config.all_agents().count();
        findings.insert(0, Finding::ok(AREA, format!("it is understood; agents: {agents}")));
    }
    findings
}

/// Settings that are allowed together, and hardly ever meant together.
fn contradictions(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asks = config.asks_for_credentials();
    if !asks && let Some(url) = &config.server.public_url {
        findings.push(Finding::warning(
            AREA,
            format!(
                "server.public_url is {url}, so others reach this server, and nothing asks callers for credentials"
            ),
            "make a credential with `sabir token new NAME --scope admin`, unless a proxy in front asks for some",
        ));
    }
    if !asks && config.server.allow_open {
        findings.push(Finding::warning(
            AREA,
            "server.allow_open lets everybody who can reach this server run its agents",
            "make a credential with `sabir token new NAME --scope admin`, unless this network has nobody else",
        ));
    }
    let auth = &config.auth;
    let is_admin = |scopes: &[String]| scopes.iter().any(|scope| scope == "admin");
    let has_admin = auth.tokens.iter().any(|credential| is_admin(&credential.grant.scopes))
        || auth.token.iter().chain(&auth.api_key).any(|credential| is_admin(&credential.scopes))
        || is_admin(&auth.certificate_scopes);
    if asks && !has_admin && auth.issuers.is_empty() {
        findings.push(Finding::warning(
            AREA,
            "no credential has the scope admin, so backups, `sabir push` and `sabir audit` are refused",
            "make one with `sabir token new NAME --scope admin`",
        ));
    }
    findings
}

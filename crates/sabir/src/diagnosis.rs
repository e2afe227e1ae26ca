//! What is wrong with a program that does not answer, told from its own words, and what to do about it.
//!
//! The words are those that the real programs use. What is not recognised is shown as it was said.

use sabir_agents::kinds::{ProgramInfo, Questions};

/// Why a program does not answer. In the order of `DIAGNOSES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnosis {
    CannotAsk,
    TooOld,
    CannotStart,
    NotSetUp,
    NotLoggedIn,
    NoCredit,
    NoModel,
    NoNetwork,
    NotInstalled,
    TooSlow,
    Silent,
    Unknown,
}

impl Diagnosis {
    /// What a program means by these words.
    pub fn of(words: &str) -> Self {
        let words = words.to_lowercase();
        let fits = |row: &&DiagnosisRow| row.phrases.iter().any(|phrase| contains(&words, phrase));
        DIAGNOSES.iter().find(fits).map_or(Diagnosis::Unknown, |row| row.diagnosis)
    }

    pub fn words(self) -> &'static str {
        DIAGNOSES[self as usize].words
    }

    /// What to do. `program` is how it is called.
    pub fn remedy(self, known: &ProgramInfo, program: &str, has_model: bool) -> String {
        let by_hand =
            format!("run {program} once in a terminal, as the user and with the environment of sabir, and see");
        match self {
            Diagnosis::NotInstalled => format!("install it: {}", known.install),
            Diagnosis::CannotStart => format!("see that {program} runs in a terminal; what it needs may be missing"),
            Diagnosis::TooOld => format!("install the newest version: {}", known.install),
            Diagnosis::CannotAsk => {
                let other = known.modes.iter().find(|way| way.questions == Questions::Never);
                let other = other.map_or(String::new(), |way| {
                    format!("; or use mode = \"{}\" with approve = \"all\" or \"none\"", way.mode.name())
                });
                format!("install the newest version: {}{other}", known.install)
            }
            Diagnosis::NotLoggedIn => format!("as the user who runs sabir: {}", log_in(known)),
            Diagnosis::NotSetUp => format!("as the user who runs sabir: {}", log_in(known)),
            Diagnosis::NoCredit => "look into the account of its provider, or wait".to_owned(),
            Diagnosis::NoModel if has_model => {
                format!("choose another with model in its [[agent]]; {program} knows which there are")
            }
            Diagnosis::NoModel => format!("name one with model in its [[agent]], or in the settings of {program}"),
            Diagnosis::NoNetwork => {
                "see that this machine reaches its provider; behind a proxy set HTTPS_PROXY for sabir".to_owned()
            }
            Diagnosis::TooSlow | Diagnosis::Silent | Diagnosis::Unknown => by_hand,
        }
    }
}

/// The part of the installation that comes after the program is there.
fn log_in(known: &ProgramInfo) -> &'static str {
    let usual = "log in with the program's own command, or give it its key with env or pass_env";
    known.install.split_once(", then ").map_or(usual, |(_, then)| then)
}

/// One diagnosis.
struct DiagnosisRow {
    diagnosis: Diagnosis,
    /// What it is called.
    words: &'static str,
    /// By which words of the real programs it is recognised, in lower case. None: it is known otherwise.
    phrases: &'static [&'static str],
}

/// Every diagnosis, in the order of the enum. The first row that fits counts: an outdated program may complain about its login as well, and a wrong key
/// about the model.
const DIAGNOSES: [DiagnosisRow; Diagnosis::Unknown as usize + 1] = [
    DiagnosisRow {
        diagnosis: Diagnosis::CannotAsk,
        words: "cannot ask: it does not know the protocol for that",
        phrases: &[
            "permission-prompt-tool",
            "argument: acp",
            "argument: --acp",
            "'--acp'",
            "'acp'",
            "'app-server'",
            "argument '--stdio",
        ],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::TooOld,
        words: "too old, or not the program that the kind means",
        phrases: &[
            "unknown option",
            "unknown argument",
            "unknown command",
            "unexpected argument",
            "unrecognized option",
            "unrecognized argument",
            "unrecognized subcommand",
            "unsupported engine",
            "requires node",
            "needs node",
            "method not found",
            "speaks version",
        ],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::CannotStart,
        words: "cannot be started",
        phrases: &["cannot be started", "no such file or directory", "exit code 127", "exit code 126"],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::NotSetUp,
        words: "not set up: it has no provider of models",
        phrases: &["no provider configured", "missing provider"],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::NotLoggedIn,
        words: "not logged in",
        phrases: &[
            "not logged in",
            "/login",
            "log in",
            "login required",
            "please login",
            "auth method",
            "authentication required",
            "authentication_failed",
            "authentication failed",
            "authentication information",
            "missing bearer",
            "invalid api key",
            "incorrect api key",
            "api key is missing",
            "api key not valid",
            "api_key",
            "no api key",
            "missing api key",
            "unauthorized",
            "unauthenticated",
            "invalid bearer token",
            "oauth token",
            "401",
            "403",
        ],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::NoCredit,
        words: "no credit, or its limit is reached",
        phrases: &[
            "credit balance",
            "insufficient_quota",
            "quota",
            "usage limit",
            "rate limit",
            "rate_limit",
            "billing",
            "402",
            "429",
        ],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::NoModel,
        words: "no such model",
        phrases: &[
            "model not found",
            "model_not_found",
            "no such model",
            "unknown model",
            "invalid model",
            "selected model",
            "providermodelnotfound",
            "no model",
            "does not exist or you do not have access",
            "cannot be used: the program does not have it",
        ],
    },
    DiagnosisRow {
        diagnosis: Diagnosis::NoNetwork,
        words: "no network",
        phrases: &[
            "econnrefused",
            "enotfound",
            "econnreset",
            "etimedout",
            "getaddrinfo",
            "connection error",
            "connection failed",
            "connection refused",
            "error sending request",
            "name does not resolve",
            "could not resolve",
            "failed to lookup address",
            "unable to connect",
            "waiting for network",
            "network error",
            "fetch failed",
            "stream disconnected",
            "unknown, retry",
        ],
    },
    DiagnosisRow { diagnosis: Diagnosis::NotInstalled, words: "not installed", phrases: &[] },
    DiagnosisRow { diagnosis: Diagnosis::TooSlow, words: "does not answer in time", phrases: &[] },
    DiagnosisRow { diagnosis: Diagnosis::Silent, words: "ends without an answer", phrases: &[] },
    DiagnosisRow { diagnosis: Diagnosis::Unknown, words: "fails", phrases: &[] },
];

const _: () = {
    let mut at = 0;
    while at < DIAGNOSES.len() {
        assert!(DIAGNOSES[at].diagnosis as usize == at, "rows are in the order of the enum");
        at += 1;
    }
};

/// A number counts only as a word: `401` is not in `14012`.
fn contains(words: &str, needle: &str) -> bool {
    if !needle.bytes().all(|byte| byte.is_ascii_digit()) {
        return words.contains(needle);
    }
    words.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == needle)
}

#[cfg(test)]
mod tests {
    use sabir_agents::kinds::PROGRAMS;

    use super::*;

    /// What the real programs say.
    #[test]
    fn words_of_real_programs() {
        for (words, expected) in [
            ("Not logged in · Please run /login", Diagnosis::NotLoggedIn),
            ("Invalid API key · Fix external API key", Diagnosis::NotLoggedIn),
            ("the model gave an error (401 authentication_failed), retry 1 of 1", Diagnosis::NotLoggedIn),
            (
                "the program is not logged in: log in with its own command first. It said: Gemini API key is missing",
                Diagnosis::NotLoggedIn,
            ),
            (
                "exit code 41: Please set an Auth method in your settings.json or specify GEMINI_API_KEY",
                Diagnosis::NotLoggedIn,
            ),
            ("Internal error: Missing provider", Diagnosis::NotSetUp),
            ("error: No provider configured. Run 'goose configure' first.", Diagnosis::NotSetUp),
            (
                "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
                Diagnosis::NotLoggedIn,
            ),
            ("the program ended with exit code 2: error: unexpected argument '--json' found", Diagnosis::TooOld),
            ("error: unknown option '--include-partial-messages'", Diagnosis::TooOld),
            ("Unknown argument: acp", Diagnosis::CannotAsk),
            ("error: unknown option '--permission-prompt-tool'", Diagnosis::CannotAsk),
            ("error: unrecognized subcommand 'app-server'", Diagnosis::CannotAsk),
            (
                "There's an issue with the selected model (x). It may not exist or you may not have access",
                Diagnosis::NoModel,
            ),
            ("the program ended with exit code 1: ProviderModelNotFoundError", Diagnosis::NoModel),
            ("the model huge cannot be used: the program does not have it; it has small, big", Diagnosis::NoModel),
            ("Credit balance is too low", Diagnosis::NoCredit),
            ("Reconnecting... waiting for network (Connection failed: error sending request)", Diagnosis::NoNetwork),
            ("stream disconnected before completion: failed to lookup address information", Diagnosis::NoNetwork),
            ("API Error: Unable to connect to API (ECONNREFUSED)", Diagnosis::NoNetwork),
            ("the program claude cannot be started; the server's log says why", Diagnosis::CannotStart),
            ("the program ended with exit code 127: env: 'node': No such file or directory", Diagnosis::CannotStart),
            ("fake model refuses this request (HTTP 400) after 14012 ms", Diagnosis::Unknown),
        ] {
            assert_eq!(Diagnosis::of(words), expected, "{words}");
        }
    }

    #[test]
    fn every_trouble_has_a_remedy_for_every_kind() {
        for DiagnosisRow { diagnosis, .. } in &DIAGNOSES {
            for known in &PROGRAMS {
                assert!(diagnosis.remedy(known, "x", false).len() > 10, "{diagnosis:?} {}", known.name);
            }
        }
    }
}

//! The address of a Postgres database. It often has a password, which is shown nowhere: neither by `sabir config`, nor in a log,
//! nor in the message that refuses a wrong address.

use std::fmt;

use super::sections::Secret;

/// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`, also with several hosts. Its `Display` has no password.
#[derive(Clone, PartialEq)]
pub struct PostgresUrl {
    whole: Secret,
    shown: String,
}

/// What begins such an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The options whose values are secrets.
const SECRET_OPTIONS: [&str; 2] = ["password", "sslpassword"];

impl PostgresUrl {
    pub const EXPECTED: &str = "postgres://USER@HOST/DATABASE";

    /// Whether this is meant to be such an address.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("postgres:") || text.starts_with("postgresql:")
    }

    /// `Err` says what is wrong, in words that follow the name of the setting and repeat nothing of the address.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("names a Postgres database, but {what}; expected {}", Self::EXPECTED));
        let Some(rest) = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)) else {
            return wrong("there is no // after the colon");
        };
        if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) || text.contains('#') {
            return wrong("it has letters that must be written as %XX");
        }
        let (address, options) = rest.split_once('?').map_or((rest, ""), |(address, options)| (address, options));
        let (authority, database) = address.split_once('/').unwrap_or((address, ""));
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(user_info), hosts),
            None => (None, authority),
        };
        // A password with a slash or a question mark that is not written as %XX would end up in what is shown.
        if [database, options].iter().any(|part| part.contains('@')) || !hosts.split(',').all(is_host_and_port) {
            return wrong(
                "the host cannot be separated from user and password: write @, :, / and ? of the password as %40, %3A, %2F and %3F",
            );
        }
        if database.is_empty() || database.contains('/') {
            return wrong("the name of the database is missing");
        }
        let names_host = options.split('&').any(|option| option.starts_with("host="));
        if hosts.is_empty() && !names_host {
            return wrong("the host is missing");
        }
        let user = user_info.map(|user_info| user_info.split(':').next().unwrap_or_default());
        let user = user.filter(|user| !user.is_empty()).map(|user| format!("{user}@")).unwrap_or_default();
        let is_shown = |option: &&str| {
            let name = option.split('=').next().unwrap_or_default();
            !option.is_empty() && !SECRET_OPTIONS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
        };
        let options: Vec<&str> = options.split('&').filter(is_shown).collect();
        let options = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
        let shown = format!("postgres://{user}{hosts}/{database}{options}");
        Ok(Self { whole: Secret::new(text), shown })
    }

    /// With the password: for whoever connects, and for nobody else.
    pub fn with_password(&self) -> &str {
        self.whole.as_str()
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.shown)
    }
}

/// A name, an address or a folder with a socket (`%2Frun%2Fpostgresql`), with or without a port.
fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, port.strip_prefix(':').or(Some("?"))),
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_%:".contains(&byte);
    host.bytes().all(is_letter) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, expected) in [
            ("postgres://me:secret@db/sabir", "postgres://me@db/sabir"),
            ("postgresql://me:secret@db:5432/sabir", "postgres://me@db:5432/sabir"),
            ("postgres://me@db/sabir?password=secret&sslmode=require", "postgres://me@db/sabir?sslmode=require"),
            ("postgres://db/sabir?PASSWORD=secret", "postgres://db/sabir"),
            ("postgres://:secret@db/sabir", "postgres://db/sabir"),
            ("postgres://me:secret%2F@one:1,two:2/sabir", "postgres://me@one:1,two:2/sabir"),
            ("postgres://me:secret@[::1]:5432/sabir", "postgres://me@[::1]:5432/sabir"),
            ("postgres://me@%2Frun%2Fpostgresql/sabir", "postgres://me@%2Frun%2Fpostgresql/sabir"),
            ("postgres:///sabir?host=/run/postgresql", "postgres:///sabir?host=/run/postgresql"),
        ] {
            let url = PostgresUrl::parse(text).unwrap();
            assert_eq!((url.to_string().as_str(), url.with_password()), (expected, text));
            assert!(!format!("{url} {url:?}").contains("secret"), "{url:?}");
        }
    }

    #[test]
    fn a_wrong_address_is_refused_without_repeating_it() {
        for (text, expected) in [
            ("postgres:sabir", "there is no //"),
            ("postgres://me:secret@db", "the name of the database is missing"),
            ("postgres://me:secret@db/", "the name of the database is missing"),
            ("postgres://me:secret@db/a/b", "the name of the database is missing"),
            ("postgres:///sabir", "the host is missing"),
            // The password is `secret/secret`, `secret?secret` and `secret#secret`.
            ("postgres://me:secret/secret@db/sabir", "%2F"),
            ("postgres://me:secret?secret@db/sabir", "%2F"),
            ("postgres://me:1/secret@db/sabir", "%2F"),
            ("postgres://me:secret#secret@db/sabir", "%XX"),
            ("postgres://me:secret secret@db/sabir", "%XX"),
            ("postgres://me:secret@db:none/sabir", "%2F"),
        ] {
            let words = PostgresUrl::parse(text).unwrap_err();
            assert!(words.contains(expected) && !words.contains("secret"), "{text}: {words}");
        }
    }
}

//! What is logged: a level, or levels per module, such as `info,sabir=debug`.
//!
//! The logging library takes any word for the name of a module, so `inof` would silence everything without a
//! word. Here a word without `=` must be a level.

pub const EXPECTED: &str = "off, error, warn, info, debug or trace, also per module: \"info,sabir=debug\"";

/// The filter in lower-case levels, as the logging library reads it.
pub fn parse(text: &str) -> Option<String> {
    let mut directives = Vec::new();
    for directive in text.split(',').map(str::trim) {
        let (module, level) = match directive.split_once('=') {
            Some((module, level)) => (Some(module.trim()), level.trim()),
            None => (None, directive),
        };
        let level = level.to_ascii_lowercase();
        if !LEVELS.contains(&level.as_str()) {
            return None;
        }
        match module {
            Some(module) if is_module(module) => directives.push(format!("{module}={level}")),
            Some(_) => return None,
            None => directives.push(level),
        }
    }
    Some(directives.join(","))
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

fn is_module(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives() {
        for (text, expected) in [
            ("info", Some("info")),
            ("WARN", Some("warn")),
            ("info, sabir=debug", Some("info,sabir=debug")),
            ("sabir_engine::run=Trace", Some("sabir_engine::run=trace")),
            ("inof", None),
            ("sabir=loud", None),
            ("=debug", None),
            ("info,", None),
            ("", None),
        ] {
            assert_eq!(parse(text).as_deref(), expected, "{text:?}");
        }
    }
}

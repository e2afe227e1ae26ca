//! The flags that somebody gave, as settings.

use crate::cli::Options;

use super::raw::Raw;

/// Key, flag and value. `--agent` is not among them: it replaces a list rather than set a value.
pub fn read(options: &Options) -> Vec<(&'static str, &'static str, Raw)> {
    let mut given = Vec::new();
    given.extend(listen(options));
    if options.allow_open {
        given.push(("server.allow_open", "--allow-open", Raw::Boolean(true)));
    }
    for (key, flag, value) in [
        ("server.public_url", "--public-url", &options.public_url),
        ("store.url", "--store", &options.store),
        ("log.level", "--log-level", &options.log_level),
        ("log.format", "--log-format", &options.log_format),
    ] {
        if let Some(text) = value {
            given.push((key, flag, Raw::Word(text.clone())));
        }
    }
    given
}

fn listen(options: &Options) -> Option<(&'static str, &'static str, Raw)> {
    let words = options.listen.iter().cloned().map(Raw::Word);
    let port = options.port.map(|port| Raw::Integer(port.into()));
    let list: Vec<Raw> = words.chain(port).collect();
    let flag = match (options.listen.is_empty(), options.port) {
        (true, None) => return None,
        (true, Some(_)) => "--port",
        (false, None) => "--listen",
        (false, Some(_)) => "--listen, --port",
    };
    Some(("server.listen", flag, Raw::List(list)))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::config::agent_settings::AGENT_SETTINGS;
    use crate::config::settings::SETTINGS;

    #[test]
    fn every_flag_of_the_table_exists_and_sets_its_key() {
        let words = "sabir serve --listen :1 --public-url u --store s --allow-open --log-level l --log-format f";
        let Command::Serve(options) = Cli::parse_from(words.split(' ')).command else {
            panic!("serve was asked for");
        };
        let mut given: Vec<_> = read(&options).into_iter().map(|(key, flag, _)| (key, flag)).collect();
        let with_flag = SETTINGS.iter().filter_map(|setting| Some((setting.key, setting.flag?)));
        let mut expected: Vec<_> = with_flag.collect();
        given.sort();
        expected.sort();
        assert_eq!(given, expected);

        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let flags: Vec<String> =
            serve.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        for flag in AGENT_SETTINGS.iter().filter_map(|setting| setting.flag) {
            assert!(flags.iter().any(|known| known == flag), "{flag}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_port_is_an_address_on_loopback() {
        let options = Options { listen: vec!["[::1]:1".to_owned()], port: Some(7870), ..Options::default() };
        let list = Raw::List(vec![Raw::Word("[::1]:1".to_owned()), Raw::Integer(7870)]);
        assert_eq!(read(&options), [("server.listen", "--listen, --port", list)]);
    }
}

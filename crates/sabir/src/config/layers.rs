//! Defaults, file, environment, flags: each layer covers the one before, and each value remembers its layer.
//!
//! Every layer is read to its end before anything is refused, so that one start tells all that is wrong. A wrong
//! value is reported also where a stronger layer covers it: it would bite on another day.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use crate::cli::CliOptions;

use super::agents::{self, Source};
use super::default_database::{default_database, proxy_database};
use super::delegation;
use super::env_aliases::read_aliases;
use super::environment::{self, Environment, read_flags, read_variables, unknown_names};
use super::file::{self, File, TableKeys, lists_in};
use super::node_folder::default_node_folder;
use super::origin::{Configured, Problem, Problems, SettingValue, ValueOrigin};
use super::paths::Folders;
use super::proxy_agent::proxy_agent;
use super::raw::{Raw, RawEntry};
use super::routes::{self, AliasRoute};
use super::sections::{AgentConfig, Config, StoreUrl};
use super::settings::{SETTINGS, row_of};
use super::start_checks::{advice, exposed, is_private, only_loopback, readable_credentials, refusal, unanswerable};
use super::{auth, auth_issuers, upstream_credentials};

/// The configuration in force.
#[derive(Debug)]
pub struct LoadedConfig {
    pub config: Config,
    /// Every setting with its value and where it came from, in the order of the documentation.
    pub values: Vec<SettingValue>,
    /// What a person should know and what stops nothing.
    pub warnings: Vec<String>,
}

/// The configuration that these flags and this environment make, with the file that they name or find.
pub fn load<N: Into<OsString>, V: Into<OsString>>(
    options: &CliOptions,
    environment: impl IntoIterator<Item = (N, V)>,
) -> Result<LoadedConfig, Problems> {
    let environment = Environment::new(environment);
    let file = match file::find(options.config.as_deref(), &environment) {
        Ok(Some((path, bytes))) => file::parse(&path, &bytes),
        Ok(None) => File::default(),
        Err(problem) => File { problems: vec![problem], ..File::default() },
    };
    let (folder, file_name) = file.home_of_server();
    let database = match &options.remote {
        Some(remote) => proxy_database(&environment, &remote.url),
        None => default_database(&environment, &folder, file_name, Path::exists),
    };
    let mut loaded = merge(options, &environment, file, &database.path)?;
    if loaded.values.iter().any(|setting| setting.key == STORE && setting.origin == ValueOrigin::Default) {
        loaded.warnings.extend(database.notice);
    }
    Ok(loaded)
}

/// Puts the layers on each other. `database` is used when nobody names one.
pub fn merge(
    options: &CliOptions,
    environment: &Environment,
    mut file: File,
    database: &Path,
) -> Result<LoadedConfig, Problems> {
    let mut problems = std::mem::take(&mut file.problems);
    let mut warnings = Vec::new();
    let mut config = Configured::new(Config::default(), &SETTINGS);
    place_database(&mut config, database);

    for entry in &file.root.entries {
        problems.extend(read_section(&mut config, &file.name, entry));
    }

    auth::read_lists(&mut config, &file, &mut problems);

    let aliases = read_aliases(environment);
    for (key, names, raw) in &aliases.settings {
        let set = config.set(row_of(&SETTINGS, key), raw, ValueOrigin::EnvAlias(names.clone()));
        warnings.extend(set.err().map(|problem| problem.as_warning()));
    }
    for (key, name, raw) in &aliases.checked_settings {
        problems.extend(config.set(row_of(&SETTINGS, key), raw, ValueOrigin::EnvAlias(name.clone())).err());
    }
    warnings.extend_from_slice(&aliases.warnings);

    let (variables, ignored) = read_variables(environment);
    for variable in variables {
        let origin = ValueOrigin::Variable(variable.variable);
        let set = match variable.value {
            Ok(raw) => config.set(variable.setting, &raw, origin),
            Err(words) => Err(Problem::of(&origin, variable.setting.key, &words)),
        };
        problems.extend(set.err());
    }
    warnings.extend(ignored);

    for (key, flag, raw) in read_flags(options) {
        problems.extend(config.set(row_of(&SETTINGS, key), &raw, ValueOrigin::Flag(flag)).err());
    }

    let chosen = chosen_kinds(options, environment, &mut problems);
    let proxied = options.remote.as_ref().map(|remote| proxy_agent(remote, environment, &mut problems));
    let mut agents = agents::collect(&file, proxied, chosen, &aliases, &mut problems, &mut warnings);
    for agent in &mut agents.agents {
        problems.extend(upstream_credentials::read_variables(agent, environment));
    }
    if agents.source == Source::InsteadOfFile {
        warnings.extend(routes::drop_those_of_the_file(&mut config));
    }
    config.subject.agents = absorb_agents(&mut config, agents.agents);
    config.subject.routed_agents = absorb_agents(&mut config, agents.routed_agents);
    let issuers = auth_issuers::collect(&config.subject, &file, &aliases, &mut problems, &mut warnings);
    for issuer in issuers {
        let issuer = config.absorb(&auth_issuers::key_of(&issuer.subject), issuer);
        config.subject.auth.issuers.push(issuer);
    }
    let home = environment.path("HOME");
    let folders = Folders { file: file.folder(), home: home.as_deref() };
    problems.extend(folders.complete_all(&mut config));
    place_node_folder(&mut config, environment);
    for AliasRoute { key, names, raw } in agents.routes {
        if routes::yields_to_alias(&config.value(key).origin) {
            config.set(row_of(&SETTINGS, key), &raw, ValueOrigin::EnvAlias(names)).expect("a route is a route");
        }
    }
    // What is wrong with the agents is told first; their names mean little until then.
    if problems.is_empty() {
        problems.extend(routes::check(&config));
        problems.extend(delegation::check(&config));
    }

    warnings.extend(keep_alias_address_on_loopback(&mut config));
    warnings.extend(advice(&config.subject.server));
    warnings.extend(readable_credentials(&config.subject.server, config.subject.auth.has_headers()));
    warnings.extend(unanswerable(&config.subject));
    warnings.extend(upstream_credentials::unencrypted(&config.subject));
    warnings.extend(unknown_names(environment, &config.subject));
    complete_tell_stderr(&mut config);
    Problems::check(problems)?;
    Ok(LoadedConfig { config: config.subject, values: config.values, warnings })
}

const LISTEN: &str = "server.listen";
const STORE: &str = "store.url";

/// What one key at the top of the file sets. `agent` and the lists in sections are read elsewhere.
fn read_section(config: &mut Configured<Config>, file: &str, entry: &RawEntry) -> Vec<Problem> {
    let name = entry.key.as_str();
    let lists = lists_in(name);
    let is_section = SETTINGS.iter().any(|setting| setting.section() == name) || !lists.is_empty();
    let words = match &entry.value {
        Raw::Table(table) if is_section => {
            let (prefix, place) = (format!("{name}."), TableKeys::section(name));
            let settings = table.entries.iter().filter(|entry| !lists.contains(&entry.key.as_str()));
            let set = settings.map(|entry| config.set_entry(&SETTINGS, &prefix, &place, file, entry));
            return set.filter_map(Result::err).collect();
        }
        value if is_section => format!("{name} is {value}; expected a section [{name}]"),
        _ if name == "agent" => return Vec::new(),
        value => TableKeys::top().unknown(name, value),
    };
    vec![Problem::in_file(file, entry.line, &words)]
}

/// The kinds that `--agent` and `SABIR_AGENT` name, strongest first.
fn chosen_kinds(
    options: &CliOptions,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Vec<(ValueOrigin, Raw)> {
    let mut chosen = Vec::new();
    chosen.extend(options.agent.as_ref().map(|kind| (ValueOrigin::Flag("--agent"), Raw::untyped(kind))));
    let origin = ValueOrigin::Variable(environment::AGENT.to_owned());
    match environment.text(environment::AGENT) {
        Some(Ok(kind)) => chosen.push((origin, Raw::untyped(kind))),
        Some(Err(words)) => problems.push(Problem::of(&origin, "kind", &words)),
        None => {}
    }
    chosen
}

fn absorb_agents(config: &mut Configured<Config>, agents: Vec<Configured<AgentConfig>>) -> Vec<AgentConfig> {
    let absorb = |agent: Configured<AgentConfig>| config.absorb(&format!("agent.{}", agent.subject.id), agent);
    agents.into_iter().map(absorb).collect()
}

/// The table can only name the default place; and not through text, since a home directory may have any name.
fn place_database(config: &mut Configured<Config>, path: &Path) {
    config.value_mut(STORE).value = json!(format!("sqlite:{}", path.display()));
    config.subject.store.url = StoreUrl::Sqlite(path.to_owned());
}

/// The default depends on the machine, and only servers with Postgres have such a folder.
fn place_node_folder(config: &mut Configured<Config>, environment: &Environment) {
    let Config { store, cluster, .. } = &mut config.subject;
    if !matches!(store.url, StoreUrl::Postgres(_)) || store.folder.is_some() {
        return;
    }
    let folder = default_node_folder(environment, &cluster.node());
    let shown = json!(folder.display().to_string());
    store.folder = Some(folder);
    config.value_mut("store.folder").value = shown;
}

/// Where nobody says whether callers may read what failed programs write, that follows from who the callers are.
fn complete_tell_stderr(config: &mut Configured<Config>) {
    let is_private = is_private(&config.subject);
    let Config { agents, routed_agents, .. } = &mut config.subject;
    let mut keys = Vec::new();
    for agent in agents.iter_mut().chain(routed_agents).filter(|agent| agent.is_program()) {
        if agent.program.tell_stderr.is_none() {
            agent.program.tell_stderr = Some(is_private);
            keys.push(format!("agent.{}.tell_stderr", agent.id));
        }
    }
    for key in keys {
        config.value_mut(&key).value = json!(is_private);
    }
}

/// An environment alias may neither stop the start nor open the server to other machines, so an address of its making
/// stays on loopback until somebody allows more.
fn keep_alias_address_on_loopback(config: &mut Configured<Config>) -> Option<String> {
    let address = exposed(&config.subject)?;
    let origin = config.value(LISTEN).origin.clone();
    let ValueOrigin::EnvAlias(_) = origin else { return None };
    let inside = only_loopback(&config.subject.server.listen);
    let refusal = refusal(address, &origin);
    let set = config.set(row_of(&SETTINGS, LISTEN), &Raw::untyped(inside.join(",")), origin);
    set.expect("loopback addresses are addresses");
    Some(format!("{refusal}; listening on {} instead", inside.join(", ")))
}

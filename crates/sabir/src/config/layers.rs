//! Defaults, file, environment, flags: each layer covers the one before, and each value remembers its layer.
//!
//! Every layer is read to its end before anything is refused, so that one start tells all that is wrong. A wrong
//! value is reported also where a stronger layer covers it: it would bite on another day.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde_json::json;

use crate::cli::Options;

use super::agents::{self, Gathered, Source, Wishes};
use super::borrowed::{self, Said};
use super::described::{Described, Shown};
use super::environment::{self, Environment};
use super::file::{self, File};
use super::origin::{Origin, Problem};
use super::raw::Raw;
use super::routes::Wanted;
use super::sections::{Agent, AgentKind, Config, StoreUrl};
use super::settings::{SETTINGS, setting};
use super::{exposure, flags, routes, store_url};

/// The configuration in force.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Every setting with its value and where it came from, in the order of the documentation.
    pub values: Vec<Shown>,
    /// What a person should know and what stops nothing.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Refuses to serve the world by accident. `sabir config` shows such a configuration; `serve` asks here first.
    pub fn refuse_open_door(&self) -> Result<(), Problems> {
        let Some(address) = exposure::exposed(&self.config.server) else {
            return Ok(());
        };
        let listen = self.values.iter().find(|shown| shown.key == LISTEN);
        let origin = &listen.expect("every setting has a value").origin;
        Err(Problems(vec![exposure::refusal(address, origin)]))
    }
}

/// Everything that is wrong with the configuration, one line each.
#[derive(Debug)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// The configuration that these flags and this environment make, with the file that they name or find.
pub fn load<N: Into<OsString>, V: Into<OsString>>(
    options: &Options,
    environment: impl IntoIterator<Item = (N, V)>,
) -> Result<Loaded, Problems> {
    let environment = Environment::new(environment);
    match file::find(options.config.as_deref(), &environment) {
        Ok(Some((name, bytes))) => stack(options, &environment, &file::parse(&name, &bytes), vec![]),
        Ok(None) => stack(options, &environment, &File::default(), vec![]),
        Err(problem) => stack(options, &environment, &File::default(), vec![problem]),
    }
}

const LISTEN: &str = "server.listen";
const STORE: &str = "store.url";

/// Puts the layers on each other. `problems` are those that came up on the way here.
pub(super) fn stack(
    options: &Options,
    environment: &Environment,
    file: &File,
    mut problems: Vec<Problem>,
) -> Result<Loaded, Problems> {
    let mut layers = Layers::defaults(environment);
    let mut warnings = Vec::new();

    for problem in &file.problems {
        problems.push(Problem::in_file(&file.name, problem.line, &problem.words));
    }
    for entry in &file.entries {
        let origin = Origin::File { name: file.name.clone(), line: entry.line };
        problems.extend(layers.set(entry.setting, &entry.raw, origin).err());
    }

    let borrowed = borrowed::read(environment);
    for (key, names, raw) in &borrowed.settings {
        let origin = Origin::Borrowed(names.clone());
        if let Err(problem) = layers.set(setting(key), raw, origin) {
            warnings.push(problem.as_warning());
        }
    }
    warnings.extend_from_slice(&borrowed.warnings);

    let (named, unknown) = environment::read(environment);
    for name in named {
        let origin = Origin::Variable(name.variable);
        match name.value {
            Ok(raw) => problems.extend(layers.set(name.setting, &raw, origin).err()),
            Err(words) => problems.push(Problem::of(&origin, name.setting.key, &words)),
        }
    }
    warnings.extend(unknown);

    for (key, flag, raw) in flags::read(options) {
        problems.extend(layers.set(setting(key), &raw, Origin::Flag(flag)).err());
    }

    let gathered = gather_agents(options, environment, file, &borrowed, &mut problems, &mut warnings);
    if gathered.source == Source::InsteadOfFile {
        warnings.extend(routes::forget_those_of_the_file(&mut layers));
    }
    for described in gathered.agents {
        let agent = layers.absorb_agent(described);
        layers.subject.agents.push(agent);
    }
    for described in gathered.backstage {
        let agent = layers.absorb_agent(described);
        layers.subject.backstage.push(agent);
    }
    for Wanted { key, names, raw } in gathered.routes {
        if routes::may_borrow(&layers.shown(key).origin) {
            layers.set(setting(key), &raw, Origin::Borrowed(names)).expect("a route is a route");
        }
    }
    // What is wrong with the agents is told first; their names mean little until then.
    if problems.is_empty() {
        problems.extend(routes::check(&layers));
    }

    warnings.extend(layers.keep_borrowed_inside());
    warnings.extend(exposure::advice(&layers.subject.server));
    layers.decide_about_stderr();
    problems.sort_by_key(|problem| problem.line);
    if !problems.is_empty() {
        return Err(Problems(problems.into_iter().map(|problem| problem.text).collect()));
    }
    Ok(Loaded { config: layers.subject, values: layers.values, warnings })
}

fn gather_agents(
    options: &Options,
    environment: &Environment,
    file: &File,
    borrowed: &Said,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Gathered {
    let flag = options.agent.clone();
    let mut wishes = Wishes { flag: flag.map(|kind| (Origin::Flag("--agent"), Raw::Word(kind))), variable: None };
    let origin = Origin::Variable(environment::AGENT.to_owned());
    match environment.text(environment::AGENT) {
        Some(Ok(kind)) => wishes.variable = Some((origin, Raw::Word(kind.to_owned()))),
        Some(Err(words)) => problems.push(Problem::of(&origin, "kind", &words)),
        None => {}
    }
    agents::gather(file, wishes, borrowed, problems, warnings)
}

/// The configuration as far as it is known, and the layer of each value.
type Layers = Described<Config>;

impl Layers {
    fn defaults(environment: &Environment) -> Self {
        let mut layers = Described::new(Config::default(), SETTINGS);
        layers.place_store(&store_url::default_file(environment));
        layers
    }

    /// The table can only name the place; and not through text, since a home directory may have any name.
    fn place_store(&mut self, path: &Path) {
        self.subject.store.url = StoreUrl::Sqlite(path.to_owned());
        let shown = self.values.iter_mut().find(|shown| shown.key == STORE).expect("every setting has a value");
        shown.value = json!(format!("sqlite:{}", path.display()));
    }

    /// Where nobody says whether callers may read what failed programs write, that follows from who the callers are.
    fn decide_about_stderr(&mut self) {
        let is_private = exposure::is_private(&self.subject.server);
        let Config { agents, backstage, .. } = &mut self.subject;
        for agent in agents.iter_mut().chain(backstage) {
            let AgentKind::Program(_) = agent.kind else { continue };
            if agent.program.tell_stderr.is_none() {
                agent.program.tell_stderr = Some(is_private);
                let key = format!("agent.{}.tell_stderr", agent.id);
                let shown = self.values.iter_mut().find(|shown| shown.key == key);
                shown.expect("every setting of a program has a value").value = json!(is_private);
            }
        }
    }

    fn absorb_agent(&mut self, described: Described<Agent>) -> Agent {
        let name = format!("agent.{}", described.subject.id);
        self.absorb(&name, described)
    }

    /// A borrowed name may neither stop the start nor open the door, so an address of its making stays on
    /// loopback until somebody allows more.
    fn keep_borrowed_inside(&mut self) -> Option<String> {
        let address = exposure::exposed(&self.subject.server)?;
        let origin = self.shown(LISTEN).origin.clone();
        let Origin::Borrowed(_) = origin else {
            return None;
        };
        let inside = exposure::kept_inside(&self.subject.server.listen);
        let raw = Raw::Word(inside.join(","));
        self.set(setting(LISTEN), &raw, origin.clone()).expect("loopback addresses are addresses");
        let refusal = exposure::refusal(address, &origin);
        Some(format!("{refusal}; listening on {} instead", inside.join(", ")))
    }
}

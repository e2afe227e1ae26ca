//! The tables of everything that can be set of an agent.

use sabir_model::{Extension, Skill};
use serde_json::Value;

use super::kinds::*;
use super::raw::Raw;
use super::sections::Agent;
use super::setting::{Setting, put};

/// The agent setting of this key; the key is one of ours.
pub fn agent_setting(key: &str) -> &'static Setting<Agent> {
    let found = AGENT_SETTINGS.iter().find(|setting| setting.key == key);
    found.expect("keys inside the program are keys of the table")
}

/// The keys of an `[[agent]]` table.
pub static AGENT_SETTINGS: &[Setting<Agent>] = &[
    agent(
        "id",
        "",
        "Its name in paths, and its tenant in 1.0: 1 to 64 letters, digits, dots, dashes and underscores.",
        |agent, raw| put(&mut agent.id, agent_id(raw)?),
    )
    .required(),
    agent("kind", "", "What does the work: `demo` or `conformance`.", |agent, raw| {
        put(&mut agent.kind, agent_kind(raw)?)
    })
    .required()
    .short("SABIR_AGENT")
    .flag("--agent"),
    agent("name", "", "Its name on cards. Without it the kind's own name.", |agent, raw| {
        put(&mut agent.name, optional_text(raw)?)
    }),
    agent("description", "", "What cards say about it.", |agent, raw| put(&mut agent.description, optional_text(raw)?)),
    agent(
        "input_modes",
        "",
        "The media types that it takes, as the default modes of its card; parts of other types are refused. Without \
         it those of its skills, if all of them list some, or else the kind's own.",
        |agent, raw| put(&mut agent.input_modes, modes(raw)?),
    ),
    agent("output_modes", "", "The media types that it gives, in the same way.", |agent, raw| {
        put(&mut agent.output_modes, modes(raw)?)
    }),
    agent(
        "streaming",
        "true",
        "Whether callers may watch its tasks. With `false` streaming calls are refused, and its card says so.",
        |agent, raw| put(&mut agent.streaming, switch(raw)?),
    ),
    agent(
        "default",
        "false",
        "Messages that name no agent go to this one. Without any such agent they go to the first by id.",
        |agent, raw| put(&mut agent.default, switch(raw)?),
    ),
    agent("max_concurrent", "10000", "How many of its tasks run at the same time.", |agent, raw| {
        put(&mut agent.max_concurrent, count(raw, 1..=1_000_000)?)
    }),
    agent("queue", "10000", "How many tasks may wait for their turn; further ones are refused.", |agent, raw| {
        put(&mut agent.queue, count(raw, 0..=1_000_000)?)
    }),
    agent("timeout", "off", "A run that takes longer fails.", |agent, raw| put(&mut agent.timeout, limit(raw)?)),
    agent("idle_timeout", "off", "A run that is silent for this long fails.", |agent, raw| {
        put(&mut agent.idle_timeout, limit(raw)?)
    }),
];

/// The keys of an `[[agent.skill]]` table.
pub static SKILL_SETTINGS: &[Setting<Skill>] = &[
    skill("id", "", "Its name for programs, which no other skill of the agent has.", |skill, raw| {
        put(&mut skill.id, text(raw)?)
    })
    .required(),
    skill("name", "", "Its name for people.", |skill, raw| put(&mut skill.name, text(raw)?)).required(),
    skill("description", "", "What it does, for those who choose.", |skill, raw| {
        put(&mut skill.description, text(raw)?)
    })
    .required(),
    skill("tags", "", "Words to find it by.", |skill, raw| put(&mut skill.tags, texts(raw)?)),
    skill("examples", "", "Messages that it can answer.", |skill, raw| put(&mut skill.examples, texts(raw)?)),
    skill(
        "input_modes",
        "",
        "The media types that it takes. Without it those of the agent. A part that neither the agent nor any of its \
         skills lists is refused.",
        |skill, raw| put(&mut skill.input_modes, modes(raw)?),
    ),
    skill("output_modes", "", "The media types that it gives. Without it those of the agent.", |skill, raw| {
        put(&mut skill.output_modes, modes(raw)?)
    }),
];

/// The keys of an `[[agent.extension]]` table.
pub static EXTENSION_SETTINGS: &[Setting<Extension>] = &[
    extension("uri", "", "Its name, which callers put into `A2A-Extensions` to activate it.", |extension, raw| {
        put(&mut extension.uri, uri(raw)?)
    })
    .required(),
    extension("description", "", "What the agent does with it.", |extension, raw| {
        put(&mut extension.description, optional_text(raw)?)
    }),
    extension("required", "false", "Refuse messages that do not activate it.", |extension, raw| {
        put(&mut extension.required, switch(raw)?)
    }),
    extension("params", "", "Any table; the card shows it as JSON.", |extension, raw| {
        put(&mut extension.params, table(raw)?)
    }),
];

/// A row of an `[[agent]]` table.
const fn agent(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Agent, &Raw) -> Result<Value, String>,
) -> Setting<Agent> {
    Setting::new(key, default, help, read)
}

const fn skill(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Skill, &Raw) -> Result<Value, String>,
) -> Setting<Skill> {
    Setting::new(key, default, help, read)
}

const fn extension(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Extension, &Raw) -> Result<Value, String>,
) -> Setting<Extension> {
    Setting::new(key, default, help, read)
}

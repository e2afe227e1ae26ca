//! The tables of everything that can be set of an agent.

use sabir_agents::program::settings::{Isolation, PromptBy, SharedWorkspace};
use sabir_model::{Extension, Skill};
use serde_json::Value;

use super::kinds::*;
use super::program_values::{approve, arguments, command, folder, folders, mode, variable_names, variables};
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
    agent(
        "kind",
        "",
        "What does the work: `demo`, `conformance`, or a program: `claude-code`, `codex`, `gemini`, `opencode`, `goose`, \
         `copilot`, `qwen`, `vibe`, `cursor`, `acp`, `generic` or `command`.",
        |agent, raw| put(&mut agent.kind, agent_kind(raw)?),
    )
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
    agent(
        "max_concurrent",
        "10000",
        "How many of its tasks run at the same time. The default of programs is 4.",
        |agent, raw| put(&mut agent.max_concurrent, count(raw, 1..=1_000_000)?),
    ),
    agent(
        "queue",
        "10000",
        "How many tasks may wait for their turn; further ones are refused. The default of programs is 1000.",
        |agent, raw| put(&mut agent.queue, count(raw, 0..=1_000_000)?),
    ),
    agent(
        "max_parked",
        "100",
        "How many runs that wait for their callers' answers give their places back to others. A further one asks its \
         caller all the same and keeps its place.",
        |agent, raw| put(&mut agent.max_parked, count(raw, 0..=1_000_000)?),
    ),
    agent("timeout", "off", "A run that takes longer fails. The default of programs is `20m`.", |agent, raw| {
        put(&mut agent.timeout, limit(raw)?)
    }),
    agent("idle_timeout", "off", "A run that is silent for this long fails.", |agent, raw| {
        put(&mut agent.idle_timeout, limit(raw)?)
    }),
    agent(
        "stored_first",
        "false",
        "For `demo`, to measure what it costs: start only after the message is stored, as every other agent does.",
        |agent, raw| put(&mut agent.stored_first, switch(raw)?),
    ),
    agent(
        "mode",
        "",
        "How the program is talked to: `acp`, `duplex` (its own protocol, both ways) or `oneshot` (one process per \
         message). Without it the best that the kind has.",
        |agent, raw| put(&mut agent.program.mode, mode(raw)?),
    ),
    agent(
        "command",
        "",
        "The program and its first arguments, instead of the kind's own program. `acp`, `generic` and `command` need it. \
         A name without a slash is looked for on the `PATH`.",
        |agent, raw| put(&mut agent.program.command, command(raw)?),
    ),
    agent("args", "", "More arguments, behind those that the mode needs.", |agent, raw| {
        put(&mut agent.program.arguments, arguments(raw)?)
    }),
    agent(
        "model",
        "",
        "The model to use, in the words of the program. Where an ACP program does not offer it or does not let it be \
         chosen, the task fails with that reason before anything is sent to a model.",
        |agent, raw| put(&mut agent.program.model, optional_text(raw)?),
    ),
    agent("instructions", "", "What is added to the program's own instructions.", |agent, raw| {
        put(&mut agent.program.instructions, optional_text(raw)?)
    }),
    agent(
        "workspace",
        ".",
        "The folder that it works in. A relative one begins where sabir was started.",
        |agent, raw| put(&mut agent.program.workspace, folder(raw)?),
    ),
    agent(
        "workspace_roots",
        "",
        "Folders in which, or below which, a caller may choose to work instead. Without it callers cannot choose.",
        |agent, raw| put(&mut agent.program.workspace_roots, folders(raw)?),
    ),
    agent(
        "isolation",
        "none",
        "Whether tasks share the workspace (`none`) or each has a git `worktree` of its own and hands over its diff.",
        |agent, raw| {
            let words = [("none", Isolation::Shared), ("worktree", Isolation::Worktree)];
            put(&mut agent.program.isolation, choice(raw, &words)?)
        },
    ),
    agent(
        "shared_workspace",
        "queue",
        "Whether runs that work in the same folder, or in folders of which one contains the other, wait for each other \
         (`queue`), over all agents that say so, or work at the same time (`parallel`). The default of `command` and \
         `generic` is `parallel`.",
        |agent, raw| {
            let words = [("queue", SharedWorkspace::Queue), ("parallel", SharedWorkspace::Parallel)];
            put(&mut agent.program.shared_workspace, choice(raw, &words)?)
        },
    ),
    agent(
        "approve",
        "",
        "What happens when the program wants permission to use a tool: `ask` the caller, allow `all`, or allow `none`. Without \
         it `ask` where the mode can ask (`generic`: where `approval_pattern` is set), else `none`.",
        |agent, raw| put(&mut agent.program.approve, approve(raw)?),
    ),
    agent("approval_timeout", "24h", "A question that nobody answers in this time is answered with no.", |agent, raw| {
        put(&mut agent.program.approval_timeout, limit(raw)?)
    }),
    agent(
        "prompt",
        "argument",
        "How a `generic` program gets the message: as its last `argument`, which other users of the machine can see, or on \
         its `stdin`.",
        |agent, raw| {
            let words = [("argument", PromptBy::Argument), ("stdin", PromptBy::Stdin)];
            put(&mut agent.program.prompt_by, choice(raw, &words)?)
        },
    ),
    agent(
        "hibernate_after",
        "30m",
        "A program whose question nobody has answered for this long is ended, and resumed on the answer. Only Claude Code \
         in mode `duplex`: others were not shown to ask again. Not with `isolation = \"worktree\"`.",
        |agent, raw| put(&mut agent.program.hibernate_after, limit(raw)?),
    ),
    agent(
        "approval_pattern",
        "",
        "A regular expression for lines that ask for permission, for `generic`. Without it the usual forms, such as `[Y/n]`, if \
         `approve` is `ask`.",
        |agent, raw| put(&mut agent.program.approval_pattern, optional_text(raw)?),
    ),
    agent("approval_response", "y", "What such a program reads for yes.", |agent, raw| {
        put(&mut agent.program.approval_response, text(raw)?)
    }),
    agent(
        "trust_prompts",
        "false",
        "Whether a caller's text may be a command of the program: `/name` at its start, and `@path`, which reads a file. \
         With `false` both reach the model as plain text.",
        |agent, raw| put(&mut agent.program.trust_prompts, switch(raw)?),
    ),
    agent(
        "trust_workspace",
        "false",
        "For `claude-code` and `codex`: whether the program obeys the settings of the workspace (hooks, allow rules, MCP \
         servers, commands). With `false` only deny rules and instructions (`CLAUDE.md`, `AGENTS.md`) count.",
        |agent, raw| put(&mut agent.program.trust_workspace, switch(raw)?),
    ),
    agent(
        "env",
        "",
        "A table of variables that the program gets. Their values are not shown by `sabir config`.",
        |agent, raw| put(&mut agent.program.environment, variables(raw)?),
    ),
    agent(
        "pass_env",
        "",
        "Names of variables that are passed on to the program, beside those that its kind needs; `PREFIX_*` passes on \
         many.",
        |agent, raw| put(&mut agent.program.pass_environment, variable_names(raw)?),
    ),
    agent(
        "tell_stderr",
        "",
        "Whether callers are told the end of what a failed program wrote to its standard error, with the secrets of its \
         environment masked; the log has it always. Without it only while every listener is loopback and \
         `server.public_url` is not set.",
        |agent, raw| {
            let (tell, shown) = switch(raw)?;
            put(&mut agent.program.tell_stderr, (Some(tell), shown))
        },
    ),
    agent(
        "keep_files",
        "false",
        "Whether files of messages stay in `.sabir/` of the workspace when their task is over.",
        |agent, raw| put(&mut agent.program.keep_files, switch(raw)?),
    ),
    agent(
        "keep_warm",
        "5m",
        "How long a program that takes several messages in one process (ACP, Claude Code, Codex) waits for the next one \
         of its context, which then costs no start. `0s`: it ends after each. At most 8 wait, over all agents; none with \
         `isolation = \"worktree\"`.",
        |agent, raw| put(&mut agent.program.keep_warm, duration(raw)?),
    ),
    agent("max_output", "64MiB", "A program that prints more than this in one run is stopped.", |agent, raw| {
        put(&mut agent.program.max_output, size(raw)?)
    }),
];

/// The settings that only the demo agent has.
pub static DEMO_KEYS: [&str; 1] = ["stored_first"];

/// The settings that only programs have.
pub static PROGRAM_KEYS: [&str; 23] = [
    "mode",
    "command",
    "args",
    "model",
    "instructions",
    "workspace",
    "workspace_roots",
    "isolation",
    "shared_workspace",
    "approve",
    "approval_timeout",
    "prompt",
    "hibernate_after",
    "approval_pattern",
    "approval_response",
    "trust_prompts",
    "trust_workspace",
    "env",
    "pass_env",
    "tell_stderr",
    "keep_files",
    "keep_warm",
    "max_output",
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

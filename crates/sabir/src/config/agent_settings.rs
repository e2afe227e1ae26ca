//! The tables of everything that can be set of an agent, its skills and its extensions.

use std::sync::LazyLock;

use sabir_agents::program::settings::{Isolation, Mode, PromptBy, SharedWorkspace};
use sabir_agents::prompt::Approve;
use sabir_model::{Extension, Skill};
use serde_json::json;

use super::addresses::uri;
use super::agents::{agent_id, agent_kind, scope_name};
use super::openai_agents::openai_settings;
use super::paths::{arguments, command, folder};
use super::remote_agents::remote_settings;
use super::sections::{AgentConfig, DelegateTo};
use super::settings::{ForWhom, Setting};
use super::table_values::{json_table, variable_name, variables};
use super::values::*;

/// The keys of an `[[agent]]` table.
pub static AGENT_SETTINGS: LazyLock<Vec<Setting<AgentConfig>>> = LazyLock::new(|| {
    let programs = program_settings().into_iter().map(|setting| match setting.key {
        "model" | "approval_timeout" => setting.only_for(ForWhom::ProgramsAndOpenAi),
        _ => setting.only_for(ForWhom::Programs),
    });
    common_settings().into_iter().chain(programs).chain(remote_settings()).chain(openai_settings()).collect()
});

/// The keys of an `[[agent.skill]]` table.
pub static SKILL_SETTINGS: LazyLock<Vec<Setting<Skill>>> = LazyLock::new(|| {
    type Row = Setting<Skill>;
    vec![
        Row::new("id", "", text(), |skill| &mut skill.id)
            .help("Its name for programs, which no other skill of the agent has.")
            .required(),
        Row::new("name", "", text(), |skill| &mut skill.name).help("Its name for people.").required(),
        Row::new("description", "", text(), |skill| &mut skill.description)
            .help("What it does, for those who choose.")
            .required(),
        Row::new("tags", "", list(text()), |skill| &mut skill.tags).help("Words to find it by."),
        Row::new("examples", "", list(text()), |skill| &mut skill.examples).help("Messages that it can answer."),
        Row::new("input_modes", "", media_types(), |skill| &mut skill.input_modes).help(
            "The media types that it takes. Without it those of the agent. A part that neither the agent nor \
             any of its skills lists is refused.",
        ),
        Row::new("output_modes", "", media_types(), |skill| &mut skill.output_modes)
            .help("The media types that it gives. Without it those of the agent."),
    ]
});

/// The keys of an `[[agent.extension]]` table.
pub static EXTENSION_SETTINGS: LazyLock<Vec<Setting<Extension>>> = LazyLock::new(|| {
    type Row = Setting<Extension>;
    vec![
        Row::new("uri", "", uri(), |extension| &mut extension.uri)
            .help("Its name, which callers put into `A2A-Extensions` to activate it.")
            .required(),
        Row::new("description", "", optional(text()), |extension| &mut extension.description)
            .help("What the agent does with it."),
        Row::new("required", "false", switch(), |extension| &mut extension.required)
            .help("Refuse messages that do not activate it."),
        Row::new("params", "", json_table(), |extension| &mut extension.params)
            .help("Any table; the card shows it as JSON."),
    ]
});

type Row = Setting<AgentConfig>;

fn common_settings() -> Vec<Row> {
    vec![
        Row::new("id", "", agent_id(), |agent| &mut agent.id)
            .help("Its name in paths, and its tenant in 1.0: 1 to 64 letters, digits, dots, dashes and underscores.")
            .required(),
        Row::new("kind", "", agent_kind(), |agent| &mut agent.kind)
            .help(
                "What does the work: `demo`, `conformance`, `a2a` (a remote agent), `openai` (a model behind a server), or a \
                 program: `claude-code`, `codex`, `gemini`, `opencode`, `goose`, `copilot`, `qwen`, `vibe`, `cursor`, `acp`, \
                 `generic` or `command`.",
            )
            .required()
            .short_variable("SABIR_AGENT")
            .flag("--agent"),
        Row::new("name", "", optional(text()), |agent| &mut agent.name)
            .help("Its name on cards. Without it the kind's own name."),
        Row::new("description", "", optional(text()), |agent| &mut agent.description).help("What cards say about it."),
        Row::new("input_modes", "", media_types(), |agent| &mut agent.input_modes).help(
            "The media types that it takes, as the default modes of its card; parts of other types are \
             refused. Without it those of its skills, if all of them list some, or else the kind's own.",
        ),
        Row::new("output_modes", "", media_types(), |agent| &mut agent.output_modes)
            .help("The media types that it gives, in the same way."),
        Row::new("streaming", "true", switch(), |agent| &mut agent.streaming).help(
            "Whether callers may watch its tasks. With `false` streaming calls are refused, and its card says \
             so.",
        ),
        Row::new("default", "false", switch(), |agent| &mut agent.default)
            .help("Messages that name no agent go to this one. Without any such agent they go to the first by id."),
        Row::new("listed", "true", switch(), |agent| &mut agent.listed).help(
            "Whether everybody may know of it. With `false` it is on no card and in no list, and for callers \
             without a scope for it, it does not exist.",
        ),
        Row::new("approver", "", optional(scope_name()), |agent| &mut agent.approver).help(
            "Only callers of the same tenant whose credential has this scope answer its questions for permission; the \
             owner of the task answers all others. Without it the owner answers them too.",
        ),
        Row::new("max_concurrent", "10000", count(1..=1_000_000), |agent| &mut agent.max_concurrent)
            .help("How many of its tasks run at the same time on one server. The default of programs is 4, of `openai` 64."),
        Row::new("max_concurrent_total", "", optional(count(1..=1_000_000)), |agent| &mut agent.max_concurrent_total)
            .help(
                "How many of its tasks run at the same time on all servers that share a Postgres. Without it each server \
                 has its own `max_concurrent`, and nothing limits the sum.",
            ),
        Row::new("queue", "10000", count(0..=1_000_000), |agent| &mut agent.queue).help(
            "How many tasks may wait for their turn; further ones are refused. The default of programs and of \
             `openai` is 1000.",
        ),
        Row::new("max_parked", "100", count(0..=1_000_000), |agent| &mut agent.max_parked).help(
            "How many runs that wait for their callers' answers give their places back to others. A further \
             one asks its caller all the same and keeps its place.",
        ),
        Row::new("timeout", "off", limit(), |agent| &mut agent.timeout)
            .help("A run that takes longer fails. The default of programs and of `openai` is `20m`."),
        Row::new("idle_timeout", "off", limit(), |agent| &mut agent.idle_timeout)
            .help("A run that is silent for this long fails."),
        Row::new("tasks_per_caller", "", optional(or_off(count(1..=1_000_000))), |agent| &mut agent.tasks_per_caller)
            .help("Instead of `limits.tasks_per_caller`, for this agent."),
        Row::new("message_bytes", "", optional(or_off(size())), |agent| &mut agent.message_bytes)
            .help("Instead of `limits.message_bytes`, for this agent."),
        Row::new("message_parts", "", optional(or_off(count(1..=65_536))), |agent| &mut agent.message_parts)
            .help("Instead of `limits.message_parts`, for this agent."),
        Row::new("stored_first", "false", switch(), |agent| &mut agent.stored_first).only_for(ForWhom::Demo).help(
            "For `demo`, to measure what it costs: start only after the message is stored, as every other \
             agent does.",
        ),
    ]
}

fn program_settings() -> Vec<Row> {
    vec![
        Row::new(
            "mode",
            "",
            choice(&[Mode::Acp, Mode::Duplex, Mode::OneShot].map(|mode| (mode.name(), mode))),
            |agent| &mut agent.program.mode,
        )
        .help(
            "How the program is talked to: `acp`, `duplex` (its own protocol, both ways) or `oneshot` (one \
             process per message). Without it the best that the kind has.",
        ),
        Row::new("command", "", command(), |agent| &mut agent.program.command).help(
            "The program and its first arguments, instead of the kind's own program. `acp`, `generic` and \
             `command` need it. A name without a slash is looked for on the `PATH`.",
        ),
        Row::new("args", "", arguments(), |agent| &mut agent.program.arguments)
            .help("More arguments, behind those that the mode needs."),
        Row::new("model", "", optional(text()), |agent| &mut agent.program.model).help(
            "The model to use, in the words of the program or of the server; `openai` needs it. Where an ACP program does not offer it or does not \
             let it be chosen, the task fails with that reason before anything is sent to a model.",
        ),
        Row::new("instructions", "", optional(text()), |agent| &mut agent.program.instructions)
            .help("What is added to the program's own instructions."),
        Row::new("workspace", ".", folder(), |agent| &mut agent.program.workspace).help(
            "The folder that it works in. In the file a relative path begins at the folder of the file; the default is \
             the folder where sabir was started.",
        ),
        Row::new("workspace_roots", "", list(folder()), |agent| &mut agent.program.workspace_roots).help(
            "Folders in which, or below which, a caller may choose to work instead. Without it callers cannot \
             choose.",
        ),
        Row::new(
            "isolation",
            "none",
            choice(&[("none", Isolation::Shared), ("worktree", Isolation::Worktree)]),
            |agent| &mut agent.program.isolation,
        )
        .help(
            "Whether tasks share the workspace (`none`) or each has a git `worktree` of its own and hands over \
             its diff.",
        ),
        Row::new(
            "shared_workspace",
            "queue",
            choice(&[("queue", SharedWorkspace::Queue), ("parallel", SharedWorkspace::Parallel)]),
            |agent| &mut agent.program.shared_workspace,
        )
        .help(
            "Whether runs that work in the same folder, or in folders of which one contains the other, wait \
             for each other (`queue`), over all agents that say so, or work at the same time (`parallel`). The \
             default of `command` and `generic` is `parallel`.",
        ),
        Row::new(
            "approve",
            "",
            choice(&[("ask", Approve::Ask), ("all", Approve::All), ("none", Approve::None)]),
            |agent| &mut agent.program.approve,
        )
        .help(
            "What happens when the program wants permission to use a tool: `ask` the caller, allow `all`, or allow \
             `none`. Without it `ask` where the mode can ask (`generic`: where `approval_pattern` is set), \
             else `none`.",
        ),
        Row::new("approval_timeout", "24h", limit(), |agent| &mut agent.program.approval_timeout)
            .help("A question that nobody answers in this time is answered with no."),
        Row::new(
            "prompt",
            "argument",
            choice(&[("argument", PromptBy::Argument), ("stdin", PromptBy::Stdin)]),
            |agent| &mut agent.program.prompt_by,
        )
        .help(
            "How a `generic` program gets the message: as its last `argument`, which other users of the \
             machine can see, or on its `stdin`.",
        ),
        Row::new("hibernate_after", "30m", limit(), |agent| &mut agent.program.hibernate_after).help(
            "A program whose question nobody has answered for this long is ended, and resumed on the answer. \
             Only Claude Code in mode `duplex`: others were not shown to ask again. Not with `isolation = \
             \"worktree\"`.",
        ),
        Row::new("approval_pattern", "", optional(text()), |agent| &mut agent.program.approval_pattern).help(
            "A regular expression for lines that ask for permission, for `generic`. Without it the usual forms, \
             such as `[Y/n]`, if `approve` is `ask`.",
        ),
        Row::new("approval_response", "y", text(), |agent| &mut agent.program.approval_response)
            .help("What such a program reads for yes."),
        Row::new("trust_prompts", "false", switch(), |agent| &mut agent.program.trust_prompts).help(
            "Whether a caller's text may be a command of the program: `/name` at its start, and `@path`, which \
             reads a file. With `false` both reach the model as plain text.",
        ),
        Row::new("trust_workspace", "false", switch(), |agent| &mut agent.program.trust_workspace).help(
            "For `claude-code` and `codex`: whether the program obeys the settings of the workspace (hooks, \
             allow rules, MCP servers, commands). With `false` only deny rules and instructions (`CLAUDE.md`, \
             `AGENTS.md`) count.",
        ),
        Row::new("env", "", variables(), |agent| &mut agent.program.environment)
            .help("A table of variables that the program gets. Their values are not shown by `sabir config`."),
        Row::new("pass_env", "", list(variable_name()), |agent| &mut agent.program.pass_environment).help(
            "Names of variables that are passed on to the program, beside those that its kind needs; \
             `PREFIX_*` passes on many.",
        ),
        Row::new("tell_stderr", "", optional(switch()), |agent| &mut agent.program.tell_stderr).help(
            "Whether callers are told the end of what a failed program wrote to its standard error, with the \
             secrets of its environment masked; the log has it always. Without it only while every listener is \
             loopback, `server.public_url` and `server.allowed_hosts` are not set, and `server.cors_origins` has \
             no `*`.",
        ),
        Row::new("keep_files", "false", switch(), |agent| &mut agent.program.keep_files)
            .help("Whether files of messages stay in `.sabir/` of the workspace when their task is over."),
        Row::new("keep_warm", "5m", duration(), |agent| &mut agent.program.keep_warm).help(
            "How long a program that takes several messages in one process (ACP, Claude Code, Codex) waits for \
             the next one of its context, which then costs no start. `0s`: it ends after each. At most 8 wait, \
             over all agents; none with `isolation = \"worktree\"`, none that has left processes running, and none \
             on other systems than Linux.",
        ),
        Row::new("portable", "false", switch(), |agent| &mut agent.program.portable).help(
            "Whether sessions of the program can be resumed on another server that shares the Postgres, since their files \
             are on a disk that all of them have. With `false` the later turns of a context run where its session is, \
             and fail if that server is gone.",
        ),
        Row::new("delegate", "false", delegate_to(), |agent| &mut agent.program.delegate).help(
            "Whether the program may ask other agents of this server in the name of its task: `true` (all that its caller may \
             run), `false`, or a list of their ids. For `claude-code`, `codex`, and every program in mode `acp`.",
        ),
        Row::new("max_output", "64MiB", size(), |agent| &mut agent.program.max_output)
            .help("A program that prints more than this in one run is stopped."),
    ]
}

/// `true`, `false`, or a list of ids.
fn delegate_to() -> ValueKind<DelegateTo> {
    let (all, some) = (switch(), list(agent_id().called("the id of an agent")));
    ValueKind::new(json!({"anyOf": [all.schema, some.schema]}), move |raw| match all.read(raw) {
        Ok((true, shown)) => Ok((DelegateTo::All, shown)),
        Ok((false, shown)) => Ok((DelegateTo::Nobody, shown)),
        Err(_) => some.read(raw).map(|(ids, shown)| (DelegateTo::Agents(ids), shown)),
    })
}

/// A list of none would say that nothing is taken; who means the usual ones leaves the key out.
fn media_types() -> ValueKind<Vec<String>> {
    not_empty(set(media_type(), String::eq))
}

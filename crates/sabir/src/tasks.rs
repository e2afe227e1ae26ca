//! `sabir tasks assign`: has a running server give tasks to another owner.

use anyhow::Context;

use crate::admin_client::{AdminClient, encoded};
use crate::cli::AssignOptions;
use crate::config::Audience;
use crate::local_server::Load;
use crate::terminal_text::visible;

pub fn assign(options: &AssignOptions, audience: Audience, load: Load) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let mut query = format!("tasks/assign?from={}&to={}", encoded(&options.from), encoded(&options.to));
    for (name, tenant) in [("from_tenant", &options.from_tenant), ("to_tenant", &options.to_tenant)] {
        if let Some(tenant) = tenant {
            query += &format!("&{name}={}", encoded(tenant));
        }
    }
    let server = AdminClient::new(&options.server, load)?;
    let done = runtime.block_on(server.call("POST", &query))?;
    Ok(match audience {
        Audience::Program => format!("{done}\n"),
        Audience::Person => {
            let left = match done["left"].as_u64() {
                Some(0) | None => String::new(),
                Some(left) => {
                    format!("; {left} stay: they are at work, or the new owner has one of the same id. Try again later")
                }
            };
            format!("{} tasks belong to {} now{left}\n", visible(&done["moved"].to_string()), options.to)
        }
    })
}

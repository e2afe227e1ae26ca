//! `sabir acp`: an agent of the Agent Client Protocol (ACP) on standard input and output, for editors. Behind it is an agent of a
//! server, which it talks to as an A2A client.
//!
//! ```text
//!   editor ──line──▶ lines ──▶ json_rpc ──▶ agent ──▶ turn ──────▶ A2A: send, follow, answer, cancel
//!   editor ◀──line── editor ◀── session_update ◀── presenter ◀──┘
//! ```
//!
//! A session of the editor is a context of A2A, by the same id, and a prompt is a task in it. Nothing is stored here: tasks are the
//! server's, so they outlive the editor and this program, and `session/load` reads them from there (`replay`).

mod agent;
mod content;
mod editor;
mod json_rpc;
mod lines;
mod params;
mod permission;
mod presenter;
mod replay;
mod server;
mod session;
mod session_list;
mod session_update;
mod tool_calls;
mod turn;

use super::Surroundings;
use super::failure::Failure;
use crate::cli::AcpOptions;
use crate::exit::Exit;

/// Serves one editor until it closes its end.
pub async fn acp(options: &AcpOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let around = Surroundings { variables: around.variables.clone(), terminals: around.terminals, load: around.load };
    let server = server::Server::new(options.clone(), around);
    agent::serve(server).await;
    Ok(Exit::Done)
}

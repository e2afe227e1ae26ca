//! The Chat Completions API of OpenAI: each agent is a model for programs that speak it.
//!
//! A request is a message for the agent and its reply is what the agent says, so chat programs need nothing new. What the API has no
//! words for is in headers and in plain text: the context of a conversation, and questions of the agent.
//!
//! Nothing is kept between requests: `request` reads one, `prompt` makes the agent's message of it, `door` sends it, `reply` turns
//! what happens into text, and `completion` writes that.

mod completion;
mod door;
mod fields;
mod parts;
mod prompt;
mod refusal;
mod reply;
mod request;
mod side_request;

pub use door::{Chat, ChatEvents, ChatHeaders, OpenAiDoor};
pub use refusal::{ChatPlace, Refusal};

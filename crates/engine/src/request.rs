//! What an agent is told of the request that brought its message: who sent it, which extensions it activates, what it
//! accepts, and its trace.
//!
//! It is put on the message before that is stored, so a turn that waits for its slot or runs after a restart has it too.

use std::sync::Arc;

use sabir_model::{Caller, Message, Owner, RequestContext, Send};

use crate::About;

/// `owner` is the owner of the task. `None`: there is nothing to tell, so nothing is stored.
pub(crate) fn request_context(
    caller: &Caller,
    owner: &Owner,
    about: &About,
    send: &Send,
    message: &Message,
) -> Option<Arc<RequestContext>> {
    let mut context = RequestContext::default();
    // Without scopes there is no more to say of the caller than that the task is its own.
    context.caller =
        Some(caller.clone().without_delegation()).filter(|caller| caller.scopes.is_some() || caller.owner != *owner);
    context.delegated = caller.delegation.as_ref().map(|delegation| delegation.delegated.clone());
    let is_named = |uri: &String| send.extensions.contains(uri) || message.extensions.contains(uri);
    context.extensions =
        about.extensions.iter().map(|extension| &extension.uri).filter(|uri| is_named(uri)).cloned().collect();
    context.accepted_output = send.accepted_output.clone();
    context.trace = send.trace.clone();
    Some(Arc::new(context)).filter(|context| !context.is_empty())
}

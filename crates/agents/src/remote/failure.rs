//! What callers are told when a remote agent cannot do its part. Addresses are for the log alone: where an agent runs is
//! no business of its callers.

use sabir_engine::{AgentError, Outcome};
use sabir_model::Part;
use sabir_outbound::cards::CardError;
use sabir_outbound::remote::RemoteError;
use sabir_outbound::{DialError, PeerErrorKind};

/// How the turn ends. What the operator can mend is in the log.
pub(super) fn outcome(error: &RemoteError) -> Result<Outcome, AgentError> {
    tracing::warn!(%error, "a remote agent failed");
    let failed = |text: String| Ok(Outcome::Failed(vec![Part::text(text)]));
    match error {
        RemoteError::Peer { error: peer, .. } => match peer.kind {
            PeerErrorKind::Unauthenticated | PeerErrorKind::Forbidden => {
                failed("the remote agent does not accept the credential of this server".to_owned())
            }
            PeerErrorKind::TaskNotFound => {
                failed("the remote agent no longer knows the task; it may have been restarted".to_owned())
            }
            PeerErrorKind::ContentType => failed(format!("the remote agent does not take this content: {peer}")),
            PeerErrorKind::Unavailable => failed(format!("the remote agent is not available now: {peer}")),
            PeerErrorKind::Malformed => failed("the remote agent answered with something that is not A2A".to_owned()),
            _ => failed(format!("the remote agent refused the message: {peer}")),
        },
        RemoteError::Dial(DialError::BodyTooLarge { .. }) => failed(format!("the remote agent sent too much: {error}")),
        RemoteError::Dial(error) => failed(format!("the remote agent cannot be reached: {error}")),
        RemoteError::Card(CardError::Dial { error, .. }) => {
            failed(format!("the remote agent cannot be reached: {error}"))
        }
        RemoteError::Card(_) => failed("the card of the remote agent cannot be used".to_owned()),
        RemoteError::NoInterface(_) => {
            failed("the card of the remote agent names no address that can be used".to_owned())
        }
        RemoteError::Credential(_) | RemoteError::InvalidCredential(_) => {
            failed("this server has no valid credential for the remote agent now".to_owned())
        }
        RemoteError::NotInVersion(why) => failed(format!("the remote agent cannot do this: {why}")),
        RemoteError::StreamEnded => failed("the remote agent ended its stream without a result".to_owned()),
        RemoteError::EventTooLarge(_) | RemoteError::TaskTooLarge(_) => {
            failed(format!("the remote agent sent too much: {error}"))
        }
        RemoteError::OutcomeUnknown(_) => failed(
            "outcome unknown: the message was sent to the remote agent, and the connection broke before it answered"
                .to_owned(),
        ),
        RemoteError::Unreachable(time, _) => {
            failed(format!("the remote agent could not be reached for {} seconds", time.as_secs()))
        }
    }
}

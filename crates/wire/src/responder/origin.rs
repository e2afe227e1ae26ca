//! What a responder knows of the call that it answers, for those who count calls.

use super::{Envelope, Responder};
use crate::{Binding, Operation};

impl Responder<'_> {
    /// `None`: it is not known, since the request could not be read so far.
    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// How the request came here. `None`: the gateway, which is no binding of A2A.
    pub fn binding(&self) -> Option<Binding> {
        match &self.envelope {
            Envelope::JsonRpc(_) => Some(Binding::JsonRpc),
            Envelope::HttpJson(_) => Some(Binding::HttpJson),
            Envelope::Grpc(_) => Some(Binding::Grpc),
            Envelope::Gateway(_) => None,
        }
    }
}

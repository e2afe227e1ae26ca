//! The health service: the whole server and its services are as ready as the engine is.

use std::collections::BTreeMap;

use sabir_model::Error;
use sabir_proto::health::health_check_response::ServingStatus;
use sabir_proto::health::{HealthCheckRequest, HealthCheckResponse, HealthListResponse};

use super::prefix::framed;
use crate::protobuf::read_message;

/// The services that can be asked for; empty: the whole server.
const SERVICES: [&str; 3] = ["", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    Serving,
    NotServing,
    /// There is no such service. A watcher is told so and may wait for it.
    ServiceUnknown,
}

/// A request of the health service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCall {
    service: String,
}

impl HealthCall {
    pub fn read(message: &[u8]) -> Result<Self, Error> {
        Ok(Self { service: read_message::<HealthCheckRequest>(message)?.service })
    }

    pub fn is_known(&self) -> bool {
        SERVICES.contains(&self.service.as_str())
    }

    /// What the caller is told, if the server as a whole stands like this.
    pub fn status(&self, server: HealthStatus) -> HealthStatus {
        if self.is_known() { server } else { HealthStatus::ServiceUnknown }
    }
}

impl HealthStatus {
    fn proto(self) -> HealthCheckResponse {
        let status = match self {
            HealthStatus::Serving => ServingStatus::Serving,
            HealthStatus::NotServing => ServingStatus::NotServing,
            HealthStatus::ServiceUnknown => ServingStatus::ServiceUnknown,
        };
        HealthCheckResponse { status: status.into() }
    }

    /// The answer to a check, and one frame of a watch, with its prefix.
    pub fn frame(self) -> Vec<u8> {
        framed(&self.proto())
    }

    /// All services, if the server as a whole stands like this, with the prefix.
    pub fn list_frame(self) -> Vec<u8> {
        let statuses: BTreeMap<String, HealthCheckResponse> =
            SERVICES.iter().map(|service| ((*service).to_owned(), self.proto())).collect();
        framed(&HealthListResponse { statuses })
    }
}

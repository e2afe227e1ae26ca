//! The groups of HTTP+JSON paths. The group of a path decides how a request is read and how it is answered.

use sabir_model::Error;

use crate::errors::{self, GoogleStatus, ProblemDetails, RpcError};
use crate::version::VersionHeader;
use crate::{JsonDialect, Operation, ProtocolVersion, json, v1::V1, v03::V03, v03::V03Proto};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointGroup {
    /// The paths of 1.0, with `A2A-Version: 1.0`.
    V1,
    /// The paths of 1.0 without a version: read leniently, answered in 1.0, errors as RFC 9457 problems.
    Unversioned,
    /// Below `/v1`: the ProtoJSON of 0.3.
    V0_3,
    /// The extended card of 0.2: errors as problems, and 404 where there is no such card.
    V0_2Card,
    /// `/a2a/tasks`: answered like `tasks/get` over JSON-RPC, errors as problems.
    TaskAlias,
}

impl EndpointGroup {
    pub fn dialect(self) -> &'static dyn JsonDialect {
        match self {
            EndpointGroup::V1 | EndpointGroup::Unversioned => &V1,
            EndpointGroup::V0_3 => &V03Proto,
            EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => &V03,
        }
    }

    /// The version that these paths belong to.
    pub fn version(self) -> ProtocolVersion {
        match self {
            EndpointGroup::V1 | EndpointGroup::Unversioned => ProtocolVersion::V1_0,
            EndpointGroup::V0_3 | EndpointGroup::TaskAlias => ProtocolVersion::V0_3,
            EndpointGroup::V0_2Card => ProtocolVersion::V0_2,
        }
    }

    /// Whether these paths serve the version that the request names.
    pub fn serves(self, version: &VersionHeader<'_>) -> bool {
        match self {
            EndpointGroup::V1 => version.is_1_0(),
            EndpointGroup::Unversioned => version.is_missing(),
            EndpointGroup::V0_2Card => true,
            EndpointGroup::V0_3 | EndpointGroup::TaskAlias => version.is_missing() || version.is_0_x(),
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            EndpointGroup::V1 | EndpointGroup::Unversioned => "application/a2a+json",
            EndpointGroup::V0_3 | EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => "application/json",
        }
    }

    pub fn error_content_type(self) -> &'static str {
        match self {
            EndpointGroup::V1 => "application/a2a+json",
            EndpointGroup::V0_3 => "application/json",
            EndpointGroup::Unversioned | EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => {
                "application/problem+json"
            }
        }
    }

    pub fn error_status(self, error: &Error) -> u16 {
        match (self, error) {
            // Before 1.0.1 a task that can no longer be canceled was a conflict.
            (EndpointGroup::Unversioned | EndpointGroup::V0_3 | EndpointGroup::TaskAlias, Error::NotCancelable(_)) => {
                409
            }
            (EndpointGroup::V0_2Card, Error::ExtendedCardNotOffered | Error::ExtendedCardNotConfigured) => 404,
            _ => errors::http_status(error),
        }
    }

    pub fn write_error(self, error: &Error, operation: Option<Operation>, out: &mut Vec<u8>) {
        let status = self.error_status(error);
        match self {
            EndpointGroup::V1 => json::write(&GoogleStatus(error), out),
            EndpointGroup::Unversioned => {
                json::write(&ProblemDetails { error, version: ProtocolVersion::V1_0, status }, out);
            }
            EndpointGroup::V0_3 => json::write(&RpcError { error, version: ProtocolVersion::V0_3, operation }, out),
            EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => {
                json::write(&ProblemDetails { error, version: ProtocolVersion::V0_3, status }, out);
            }
        }
    }
}

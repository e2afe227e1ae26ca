//! The ways in which HTTP+JSON is spoken here.

use sabir_model::Error;

use crate::errors::{self, Problem, RpcError, Status};
use crate::version::{Family, Release, Version};
use crate::{Dialect, Operation, json, v1::V1, v03::V03, v03::V03Proto};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// 1.0, to a caller that says so.
    V1,
    /// The paths of 1.0 without a version: read leniently, answered in 1.0, errors as problems.
    Unversioned,
    /// Below `/v1`: 0.3 as its SDKs speak it, which is ProtoJSON.
    V0_3,
    /// The extended card of 0.2, which is no call but a page: told by its status, errors as problems.
    V0_2,
    /// `/a2a/tasks`: answers as `tasks/get` has them over JSON-RPC, errors as problems.
    Alias,
}

impl Form {
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Form::V1 | Form::Unversioned => &V1,
            Form::V0_3 => &V03Proto,
            Form::V0_2 | Form::Alias => &V03,
        }
    }

    /// Whether a caller of this version means these paths.
    pub fn suits(self, version: &Version<'_>) -> bool {
        match self {
            Form::V1 => version.release == Release::V1_0,
            Form::Unversioned => version.release == Release::Unsaid,
            Form::V0_2 => true,
            Form::V0_3 | Form::Alias => version.release == Release::Unsaid || version.is_0_x(),
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Form::V1 | Form::Unversioned => "application/a2a+json",
            Form::V0_3 | Form::V0_2 | Form::Alias => "application/json",
        }
    }

    pub fn error_content_type(self) -> &'static str {
        match self {
            Form::V1 => "application/a2a+json",
            Form::V0_3 => "application/json",
            Form::Unversioned | Form::V0_2 | Form::Alias => "application/problem+json",
        }
    }

    /// Before 1.0.1 a task that can no longer be canceled was a conflict.
    pub fn status(self, error: &Error) -> u16 {
        match (self, error) {
            (Form::Unversioned | Form::V0_3 | Form::Alias, Error::NotCancelable(_)) => 409,
            (Form::V0_2, Error::ExtendedCardNotOffered | Error::ExtendedCardNotConfigured) => 404,
            _ => errors::http_status(error),
        }
    }

    pub fn write_error(self, error: &Error, operation: Option<Operation>, out: &mut Vec<u8>) {
        let status = self.status(error);
        match self {
            Form::V1 => json::write(&Status(error), out),
            Form::Unversioned => json::write(&Problem { error, family: Family::V1, status }, out),
            Form::V0_3 => json::write(&RpcError { error, family: Family::V0, operation }, out),
            Form::V0_2 | Form::Alias => json::write(&Problem { error, family: Family::V0, status }, out),
        }
    }
}

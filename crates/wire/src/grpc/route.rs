//! Which call of which service a path of gRPC names: `/lf.a2a.v1.A2AService/GetTask`.

use sabir_model::{Call, Error, OnFinishedCancel};

use crate::call_context::{self, AgentSource, CallContext};
use crate::jsonrpc::method_name;
use crate::responder::TaskDialect;
use crate::version::{Requested, VersionHeader};
use crate::{
    CancelTerminal, Compat, Decoded, Dialect, KnownAgents, Operation, ProtocolVersion, RequestHead, Responder,
    V1Protobuf, V03Protobuf, protobuf,
};

/// A call of A2A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcRoute {
    /// 1.0 or 0.3: each has a service of its own.
    pub(crate) version: ProtocolVersion,
    pub(crate) operation: Operation,
}

/// What else can be called over gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcService {
    Health(HealthMethod),
    /// `v1` and its older name, `v1alpha`, have the same messages.
    Reflection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthMethod {
    Check,
    List,
    Watch,
}

pub(crate) enum GrpcPath {
    Call(GrpcRoute),
    Service(GrpcService),
    /// The service is known, the method is not.
    UnknownMethod(ProtocolVersion),
}

/// `None`: the path is not of gRPC.
pub(crate) fn match_path(path: &str) -> Option<GrpcPath> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let service = match (service, method) {
        ("lf.a2a.v1.A2AService", _) => return Some(method_of(ProtocolVersion::V1_0, method)),
        ("a2a.v1.A2AService", _) => return Some(method_of(ProtocolVersion::V0_3, method)),
        ("grpc.health.v1.Health", "Check") => GrpcService::Health(HealthMethod::Check),
        ("grpc.health.v1.Health", "List") => GrpcService::Health(HealthMethod::List),
        ("grpc.health.v1.Health", "Watch") => GrpcService::Health(HealthMethod::Watch),
        (
            "grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection",
            "ServerReflectionInfo",
        ) => GrpcService::Reflection,
        (
            "grpc.health.v1.Health"
            | "grpc.reflection.v1.ServerReflection"
            | "grpc.reflection.v1alpha.ServerReflection",
            _,
        ) => {
            return Some(GrpcPath::UnknownMethod(ProtocolVersion::V1_0));
        }
        _ => return None,
    };
    Some(GrpcPath::Service(service))
}

fn method_of(version: ProtocolVersion, method: &str) -> GrpcPath {
    let operation = OPERATIONS.into_iter().find(|operation| rpc_name(version, *operation) == Some(method));
    match operation {
        Some(operation) => GrpcPath::Call(GrpcRoute { version, operation }),
        None => GrpcPath::UnknownMethod(version),
    }
}

const OPERATIONS: [Operation; 11] = [
    Operation::Send,
    Operation::Stream,
    Operation::Get,
    Operation::List,
    Operation::Cancel,
    Operation::Subscribe,
    Operation::PushSet,
    Operation::PushGet,
    Operation::PushList,
    Operation::PushDelete,
    Operation::ExtendedCard,
];

/// The name of an operation in the service of this version. `None`: it has no such method.
pub(crate) fn rpc_name(version: ProtocolVersion, operation: Operation) -> Option<&'static str> {
    if version == ProtocolVersion::V1_0 {
        // JSON-RPC of 1.0 took its names from here.
        return method_name(version, operation);
    }
    Some(match operation {
        Operation::Send => "SendMessage",
        Operation::Stream => "SendStreamingMessage",
        Operation::Get => "GetTask",
        Operation::List => return None,
        Operation::Cancel => "CancelTask",
        Operation::Subscribe => "TaskSubscription",
        Operation::PushSet => "CreateTaskPushNotificationConfig",
        Operation::PushGet => "GetTaskPushNotificationConfig",
        Operation::PushList => "ListTaskPushNotificationConfig",
        Operation::PushDelete => "DeleteTaskPushNotificationConfig",
        Operation::ExtendedCard => "GetAgentCard",
    })
}

/// The service of this version.
pub(crate) fn service_name(version: ProtocolVersion) -> &'static str {
    if version == ProtocolVersion::V1_0 { "lf.a2a.v1.A2AService" } else { "a2a.v1.A2AService" }
}

/// `lf.a2a.v1.A2AService.GetTask`; `None`: the version has no such method.
pub(crate) fn full_name(version: ProtocolVersion, operation: Operation) -> Option<String> {
    rpc_name(version, operation).map(|name| format!("{}.{name}", service_name(version)))
}

/// The protobuf of this version.
pub(crate) fn dialect(version: ProtocolVersion) -> &'static dyn Dialect {
    if version == ProtocolVersion::V1_0 { &V1Protobuf } else { &V03Protobuf }
}

impl GrpcRoute {
    pub(crate) fn responder(&self) -> Responder<'static> {
        Responder::grpc(self.version, Some(self.operation))
    }

    /// 0.3 has one call for both cards: who shows no credential asks for the public one.
    pub fn asks_for_public_card(&self) -> bool {
        self.version.is_0_x() && self.operation == Operation::ExtendedCard
    }

    /// About how much memory the message takes when it is decoded.
    pub fn weight(&self, message: &[u8]) -> usize {
        match full_name(self.version, self.operation) {
            Some(method) => protobuf::request_weight(&method, message),
            None => message.len(),
        }
    }

    /// Reads the message of a request.
    pub fn decode(
        &self,
        head: &RequestHead<'_>,
        message: &[u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Decoded<'static> {
        let responder = Responder { task_dialect: TaskDialect::OfRequest, ..self.responder() };
        Decoded { call: self.read(head, message, compat, agents), responder }
    }

    fn read(
        &self,
        head: &RequestHead<'_>,
        message: &[u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Result<Call, Error> {
        self.check_version(head)?;
        let mut call = match self.version {
            ProtocolVersion::V1_0 => V1Protobuf.decode(self.operation, message)?,
            _ => V03Protobuf.decode(self.operation, message)?,
        };
        let context = CallContext {
            agent: AgentSource::Body,
            on_finished_cancel: match compat.cancel_terminal {
                CancelTerminal::Auto | CancelTerminal::Error => OnFinishedCancel::Refuse,
                CancelTerminal::Noop => OnFinishedCancel::Leave,
            },
            on_finished_send: compat.terminal_message,
        };
        call_context::apply(&mut call, head, &context, agents)?;
        Ok(call)
    }

    /// The service says the version already; metadata must not name another.
    fn check_version(&self, head: &RequestHead<'_>) -> Result<(), Error> {
        let header = VersionHeader::of(head);
        let is_same = match header.requested {
            Requested::Nothing => true,
            Requested::Version(version) => version.is_0_x() == self.version.is_0_x(),
            Requested::Unsupported => false,
        };
        if is_same { Ok(()) } else { Err(header.not_supported()) }
    }
}

//! Conformance faults, one rule of the specification each.
//!
//! A server with a planted fault does everything else right, so that a conformance check can be shown to find exactly this
//! one: `RemoteAgent::planted`.

use super::protocol::RemoteProtocol::{self, V1HttpJson, V1JsonRpc, V03JsonRpc};

const ALL: &[RemoteProtocol] = &[V1JsonRpc, V1HttpJson, V03JsonRpc];
const V1: &[RemoteProtocol] = &[V1JsonRpc, V1HttpJson];
const RPC: &[RemoteProtocol] = &[V1JsonRpc, V03JsonRpc];
const V1_RPC: &[RemoteProtocol] = &[V1JsonRpc];
const V1_HTTP: &[RemoteProtocol] = &[V1HttpJson];
const V03: &[RemoteProtocol] = &[V03JsonRpc];

macro_rules! planted_faults {
    ($( #[doc = $doc:literal] $variant:ident = $name:literal, $protocols:ident, $sections:literal; )*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PlantedFault {
            $( #[doc = $doc] #[doc = concat!(" Breaks ", $sections, ".")] $variant, )*
        }

        impl PlantedFault {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the server does wrong.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $doc.trim_ascii(),)* }
            }

            /// The sections of the specifications of 1.0 and 0.3 that it breaks.
            pub fn sections(self) -> &'static str {
                match self { $(Self::$variant => $sections,)* }
            }

            /// Where the fault can be planted.
            pub fn protocols(self) -> &'static [RemoteProtocol] {
                match self { $(Self::$variant => $protocols,)* }
            }
        }
    };
}

impl PlantedFault {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    pub fn applies_to(self, protocol: RemoteProtocol) -> bool {
        self.protocols().contains(&protocol)
    }
}

planted_faults! {
    /// The card has no name.
    CardWithoutName = "card-without-name", ALL, "1.0 §4.4.1, 0.3 §5.5";
    /// The card has no skills.
    CardWithoutSkills = "card-without-skills", ALL, "1.0 §4.4.1, 0.3 §5.5";
    /// A skill on the card has no tags.
    CardSkillWithoutTags = "card-skill-without-tags", ALL, "1.0 §4.4.5, 0.3 §5.5.4";
    /// The card has no default output modes.
    CardWithoutOutputModes = "card-without-output-modes", ALL, "1.0 §4.4.1, 0.3 §5.5";
    /// The interface on the card names no protocol version; in 0.3 the card itself.
    CardWithoutProtocolVersion = "card-without-protocol-version", ALL, "1.0 §4.4.6, 0.3 §5.5";
    /// The card lists a second interface, whose URL does not answer.
    CardDeadInterface = "card-dead-interface", ALL, "1.0 §8.3.1, 0.3 §5.6";
    /// The card comes as text/html.
    CardContentType = "card-content-type", ALL, "1.0 §8.2, 0.3 §5.3";
    /// The card is at the path of version 0.2 only.
    CardAtOldPath = "card-at-old-path", ALL, "1.0 §8.2, 0.3 §5.3";

    /// The card promises streaming, and streams are refused.
    StreamingRefused = "streaming-refused", ALL, "1.0 §3.3.4, 0.3 §7.2";
    /// The card promises push notifications, and configs are refused.
    PushRefused = "push-refused", ALL, "1.0 §3.1.7, 0.3 §7.5";
    /// A push config that was created cannot be read.
    PushConfigLost = "push-config-lost", ALL, "1.0 §3.1.8, 0.3 §7.6";
    /// A push config that is deleted for the second time is an error.
    PushDeleteNotIdempotent = "push-delete-not-idempotent", V1, "1.0 §3.1.10";
    /// Nothing is ever posted to a webhook.
    PushNeverDelivered = "push-never-delivered", ALL, "1.0 §4.3.3, 0.3 §9.5";
    /// The card promises an extended card, and there is no such operation.
    ExtendedCardMissing = "extended-card-missing", ALL, "1.0 §3.1.11, 0.3 §7.10";
    /// The extended card is given to clients without credentials.
    ExtendedCardOpen = "extended-card-open", ALL, "1.0 §13.3, 0.3 §7.10";

    /// An unknown method is not -32601.
    UnknownMethodCode = "unknown-method-code", RPC, "1.0 §9.5, 0.3 §8.1";
    /// A body that is no JSON is not -32700; in HTTP+JSON not 400.
    InvalidJsonCode = "invalid-json-code", ALL, "1.0 §9.5 and §11.6, 0.3 §8.1";
    /// A request without `jsonrpc` is served.
    InvalidRequestAccepted = "invalid-request-accepted", RPC, "1.0 §9.1, 0.3 §6.11";
    /// A message without parts is not -32602; in HTTP+JSON not 400.
    InvalidParamsCode = "invalid-params-code", ALL, "1.0 §9.5 and §11.6, 0.3 §8.1";
    /// The JSON-RPC id of the response is not that of the request.
    IdNotEchoed = "id-not-echoed", RPC, "1.0 §9.1, 0.3 §6.11";
    /// A JSON-RPC id that is a number comes back as a text.
    IdTypeChanged = "id-type-changed", RPC, "1.0 §9.1, 0.3 §6.11";
    /// A response has a result and an error.
    ResultAndError = "result-and-error", RPC, "1.0 §9.1, 0.3 §6.11";
    /// A response has no member `jsonrpc`.
    ResponseWithoutJsonrpc = "response-without-jsonrpc", RPC, "1.0 §9.1, 0.3 §6.11";
    /// Answers come as text/plain.
    AnswerContentType = "answer-content-type", V1_HTTP, "1.0 §11.2";

    /// An unknown task is not -32001; in HTTP+JSON not 404.
    TaskNotFoundCode = "task-not-found-code", ALL, "1.0 §5.4, 0.3 §8.2";
    /// A finished task can be canceled.
    CancelFinishedAccepted = "cancel-finished-accepted", ALL, "1.0 §3.1.5, 0.3 §7.4";
    /// Canceling a finished task is not -32002; in HTTP+JSON the reason is another.
    CancelFinishedCode = "cancel-finished-code", ALL, "1.0 §5.4, 0.3 §8.2";
    /// A request for version 9.9 is served.
    VersionAccepted = "version-accepted", V1, "1.0 §3.6.2";
    /// An unknown version is not -32009; in HTTP+JSON the reason is another.
    VersionCode = "version-code", V1, "1.0 §5.4";
    /// Errors of A2A have no ErrorInfo.
    ErrorWithoutInfo = "error-without-info", V1, "1.0 §9.5 and §11.6";
    /// The member `data` of an error is no array.
    ErrorDataNotArray = "error-data-not-array", V1_RPC, "1.0 §9.5";
    /// Errors have no message.
    ErrorWithoutMessage = "error-without-message", ALL, "1.0 §3.3.2, 0.3 §6.12";
    /// Errors have the HTTP status 200.
    ErrorWithStatus200 = "error-with-status-200", V1_HTTP, "1.0 §11.6";

    /// A message to a finished task is accepted.
    FinishedTaskMessageAccepted = "finished-task-message-accepted", ALL, "1.0 §3.1.1, 0.3 §7.1";
    /// A message to an unknown task begins a new one.
    UnknownTaskMessageAccepted = "unknown-task-message-accepted", ALL, "1.0 §3.4.2, 0.3 §8.2";
    /// A message to a task is accepted although it names another context.
    ContextMismatchAccepted = "context-mismatch-accepted", V1, "1.0 §3.4.3";
    /// The context that a client names is replaced by another.
    ContextReplaced = "context-replaced", V1, "1.0 §3.4.1";
    /// A blocking send is answered before the task is settled.
    BlockingReturnsEarly = "blocking-returns-early", ALL, "1.0 §3.2.2, 0.3 §7.1.2";
    /// A send that should be answered at once is answered when the task is settled.
    ReturnImmediatelyIgnored = "return-immediately-ignored", ALL, "1.0 §3.2.2, 0.3 §7.1.2";
    /// A task that was just created cannot be read.
    GetAfterSendNotFound = "get-after-send-not-found", ALL, "1.0 §3.1.3, 0.3 §7.3";
    /// More messages are shown than historyLength allows.
    HistoryTooLong = "history-too-long", ALL, "1.0 §3.2.4, 0.3 §7.3";
    /// With historyLength 0 there is a history.
    HistoryZeroIgnored = "history-zero-ignored", V1, "1.0 §3.2.4";

    /// Tasks have no contextId.
    TaskWithoutContext = "task-without-context", ALL, "1.0 §3.4.1, 0.3 §6.1";
    /// Times have no zone.
    TimestampWithoutZone = "timestamp-without-zone", V1, "1.0 §5.6.1";
    /// States are spelled as in the other version.
    ForeignStateNames = "foreign-state-names", ALL, "1.0 §5.5, 0.3 §6.3";
    /// A member is spelled in snake case.
    SnakeCaseMember = "snake-case-member", V1, "1.0 §5.5";
    /// Artifacts have no id.
    ArtifactWithoutId = "artifact-without-id", ALL, "1.0 §4.1.7, 0.3 §6.7";
    /// Artifacts have no parts.
    ArtifactWithoutParts = "artifact-without-parts", V1, "1.0 §5.7";
    /// Messages of the agent have no id.
    MessageWithoutId = "message-without-id", ALL, "1.0 §4.1.4, 0.3 §6.4";
    /// The result of a send is the bare task or message.
    SendResultNotWrapped = "send-result-not-wrapped", V1, "1.0 §9.4.1 and §11.3.1";
    /// Results have no `kind`.
    ResultWithoutKind = "result-without-kind", V03, "0.3 §6.1";

    /// A stream begins with an artifact, not with its task.
    StreamArtifactFirst = "stream-artifact-first", V1, "1.0 §3.1.2";
    /// A stream ends without the terminal state.
    StreamWithoutEnd = "stream-without-end", ALL, "1.0 §3.1.2, 0.3 §7.2";
    /// A stream has a further status after the terminal one.
    StreamAfterEnd = "stream-after-end", ALL, "1.0 §3.1.2, 0.3 §7.2.2";
    /// A stream stays open after the terminal state.
    StreamStaysOpen = "stream-stays-open", ALL, "1.0 §3.1.2, 0.3 §7.2.2";
    /// The first chunk of an artifact says that it is appended.
    AppendOnFirstChunk = "append-on-first-chunk", ALL, "1.0 §4.2.2, 0.3 §7.2.3";
    /// A stream comes as application/json.
    StreamContentType = "stream-content-type", ALL, "1.0 §9.4.2 and §11.7, 0.3 §3.3";
    /// Frames have no JSON-RPC envelope; in HTTP+JSON they have one.
    StreamEnvelope = "stream-envelope", ALL, "1.0 §9.4.2 and §11.7, 0.3 §3.3";
    /// The updates in a stream name another task.
    StreamForeignTask = "stream-foreign-task", ALL, "1.0 §4.2.1, 0.3 §7.2.2";
    /// No event of a stream is final.
    StreamWithoutFinal = "stream-without-final", V03, "0.3 §7.2.2";
    /// A subscription does not begin with its task.
    SubscribeWithoutSnapshot = "subscribe-without-snapshot", V1, "1.0 §3.1.6";
    /// A finished task can be subscribed to.
    SubscribeFinishedAccepted = "subscribe-finished-accepted", V1, "1.0 §3.1.6";

    /// A list has more tasks than pageSize allows.
    ListPageSizeIgnored = "list-page-size-ignored", V1, "1.0 §3.1.4";
    /// Every page of a list is the first one.
    ListPageTokenIgnored = "list-page-token-ignored", V1, "1.0 §3.1.4";
    /// A list has no nextPageToken.
    ListWithoutNextToken = "list-without-next-token", V1, "1.0 §3.1.4";
    /// A list has no totalSize.
    ListWithoutTotalSize = "list-without-total-size", V1, "1.0 §3.1.4";
    /// A list begins with the oldest task.
    ListOldestFirst = "list-oldest-first", V1, "1.0 §3.1.4";
    /// A list shows artifacts that nobody asked for.
    ListWithArtifacts = "list-with-artifacts", V1, "1.0 §3.1.4";
    /// A list of one context shows tasks of others.
    ListContextIgnored = "list-context-ignored", V1, "1.0 §3.1.4";
    /// A page of 101 tasks may be asked for.
    ListBadPageSizeAccepted = "list-bad-page-size-accepted", V1, "1.0 §3.1.4";
}

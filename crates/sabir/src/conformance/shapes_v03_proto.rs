//! The objects of 0.3 over HTTP+JSON: ProtoJSON of the package `a2a.v1`, as the SDKs of that line speak it.

use super::shape::Kind::{self, Base64, Flag, Id, List, Nested, Object, Text, Time, Word};
use super::shape::{Member, Shape};

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

static FILE: Shape = Shape::one_of(
    &[
        Member::optional("fileWithUri", Text),
        Member::optional("fileWithBytes", Base64),
        Member::optional("mimeType", Text),
        Member::optional("name", Text),
    ],
    &["fileWithUri", "fileWithBytes"],
);
static DATA: Shape = Shape::new(&[Member::optional("data", Object)]);
static PART: Shape = Shape::one_of(
    &[
        Member::optional("text", Text),
        Member::optional("file", Nested(&FILE)),
        Member::optional("data", Nested(&DATA)),
        Member::optional("metadata", Object),
    ],
    &["text", "file", "data"],
);
const PARTS: Kind = List(&Nested(&PART));

/// It has `content` where others have `parts`.
static MESSAGE: Shape = Shape::new(&[
    Member::required("messageId", Id),
    Member::required("role", Word(&["ROLE_USER", "ROLE_AGENT"])),
    Member::optional("content", PARTS),
    Member::optional("contextId", Text),
    Member::optional("taskId", Text),
    Member::optional("metadata", Object),
    Member::optional("extensions", List(&Text)),
]);

static ARTIFACT: Shape = Shape::new(&[
    Member::required("artifactId", Id),
    Member::optional("parts", PARTS),
    Member::optional("name", Text),
    Member::optional("description", Text),
    Member::optional("metadata", Object),
    Member::optional("extensions", List(&Text)),
]);

static STATUS: Shape = Shape::new(&[
    Member::optional("state", Word(STATES)),
    Member::optional("message", Nested(&MESSAGE)),
    Member::optional("update", Nested(&MESSAGE)),
    Member::optional("timestamp", Time),
]);

pub static TASK: Shape = Shape::new(&[
    Member::required("id", Id),
    Member::optional("contextId", Text),
    Member::required("status", Nested(&STATUS)),
    Member::optional("artifacts", List(&Nested(&ARTIFACT))),
    Member::optional("history", List(&Nested(&MESSAGE))),
    Member::optional("metadata", Object),
]);

static STATUS_UPDATE: Shape = Shape::new(&[
    Member::required("taskId", Id),
    Member::required("contextId", Id),
    Member::required("status", Nested(&STATUS)),
    Member::optional("final", Flag),
    Member::optional("metadata", Object),
]);

static ARTIFACT_UPDATE: Shape = Shape::new(&[
    Member::required("taskId", Id),
    Member::required("contextId", Id),
    Member::required("artifact", Nested(&ARTIFACT)),
    Member::optional("append", Flag),
    Member::optional("lastChunk", Flag),
    Member::optional("metadata", Object),
]);

/// The text of the specification says `message`, its protobuf `msg`.
pub static SEND_RESPONSE: Shape = Shape::one_of(
    &[
        Member::optional("task", Nested(&TASK)),
        Member::optional("message", Nested(&MESSAGE)),
        Member::optional("msg", Nested(&MESSAGE)),
    ],
    &["task", "message", "msg"],
);

pub static STREAM_RESPONSE: Shape = Shape::one_of(
    &[
        Member::optional("task", Nested(&TASK)),
        Member::optional("message", Nested(&MESSAGE)),
        Member::optional("msg", Nested(&MESSAGE)),
        Member::optional("statusUpdate", Nested(&STATUS_UPDATE)),
        Member::optional("artifactUpdate", Nested(&ARTIFACT_UPDATE)),
    ],
    &["task", "message", "msg", "statusUpdate", "artifactUpdate"],
);

//! The objects of 1.0 (sections 3.2.3 and 4): ProtoJSON, told apart by the member that holds them.

use super::shape::Kind::{self, Any, Base64, Flag, Id, Integer, List, Nested, Object, Some, Text, Time, Word};
use super::shape::{Member, Shape};

pub const STATES: &[&str] = &[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

pub static PART: Shape = Shape::one_of(
    &[
        Member::optional("text", Text),
        Member::optional("raw", Base64),
        Member::optional("url", Text),
        Member::optional("data", Any),
        Member::optional("metadata", Object),
        Member::optional("filename", Text),
        Member::optional("mediaType", Text),
    ],
    &["text", "raw", "url", "data"],
);
const PARTS: Kind = Some(&Nested(&PART));

pub static MESSAGE: Shape = Shape::new(&[
    Member::required("messageId", Id),
    Member::required("role", Word(&["ROLE_USER", "ROLE_AGENT"])),
    Member::required("parts", PARTS),
    Member::optional("contextId", Text),
    Member::optional("taskId", Text),
    Member::optional("metadata", Object),
    Member::optional("extensions", List(&Text)),
    Member::optional("referenceTaskIds", List(&Text)),
]);

pub static ARTIFACT: Shape = Shape::new(&[
    Member::required("artifactId", Id),
    Member::required("parts", PARTS),
    Member::optional("name", Text),
    Member::optional("description", Text),
    Member::optional("metadata", Object),
    Member::optional("extensions", List(&Text)),
]);

static STATUS: Shape = Shape::new(&[
    Member::required("state", Word(STATES)),
    Member::optional("message", Nested(&MESSAGE)),
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

pub static SEND_RESPONSE: Shape = Shape::one_of(
    &[Member::optional("task", Nested(&TASK)), Member::optional("message", Nested(&MESSAGE))],
    &["task", "message"],
);

pub static STREAM_RESPONSE: Shape = Shape::one_of(
    &[
        Member::optional("task", Nested(&TASK)),
        Member::optional("message", Nested(&MESSAGE)),
        Member::optional("statusUpdate", Nested(&STATUS_UPDATE)),
        Member::optional("artifactUpdate", Nested(&ARTIFACT_UPDATE)),
    ],
    &["task", "message", "statusUpdate", "artifactUpdate"],
);

/// That its members are there is a rule of its own.
pub static LIST_RESPONSE: Shape = Shape::new(&[
    Member::optional("tasks", List(&Nested(&TASK))),
    Member::optional("nextPageToken", Text),
    Member::optional("pageSize", Integer),
    Member::optional("totalSize", Integer),
]);

static AUTHENTICATION: Shape = Shape::new(&[Member::required("scheme", Id), Member::optional("credentials", Text)]);

pub static PUSH_CONFIG: Shape = Shape::new(&[
    Member::optional("id", Text),
    Member::optional("taskId", Text),
    Member::required("url", Id),
    Member::optional("token", Text),
    Member::optional("authentication", Nested(&AUTHENTICATION)),
]);

pub static PUSH_CONFIGS: Shape =
    Shape::new(&[Member::optional("configs", List(&Nested(&PUSH_CONFIG))), Member::optional("nextPageToken", Text)]);

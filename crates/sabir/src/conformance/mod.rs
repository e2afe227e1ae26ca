//! `sabir check`: asks an A2A server whatever its card promises, in every version and binding, and reports which rules of
//! the specification its answers break.
//!
//! ```text
//! card --> interfaces --> for each: Probe --Exchange--> observe (envelope, shapes) --> Ledger --> report
//!                                     ^                                                  ^
//!                                 rules_*: what is asked, and what the answer must be ---+
//! ```
//!
//! Rules look at JSON. What goes over gRPC is turned into the ProtoJSON of HTTP+JSON (`proto_json`, `grpc_answer`) before they do.
//!
//! A rule is data: its id, its level, the sections of the specification and a remedy. The `rules_*` files have the rules of
//! one subject and the requests that show whether a server keeps them. What every answer must have, whatever was asked, is
//! judged on every answer (`rules_envelope`, `rules_objects`). `Server` has what is known of the server, `Scene` what was
//! started there over one interface.

mod rule;

mod evidence;
mod known_deviations;
mod ledger;

mod exchange;
mod grpc_answer;
mod grpc_messages;
mod proto_json;
mod reading;
mod stream_log;
mod wire_error;

mod calls;
mod chosen;
mod deadline;
mod interface;
mod probe;
mod scene;
mod server;
mod webhook_receiver;

mod shape;
mod shapes_card;
mod shapes_v01;
mod shapes_v03;
mod shapes_v03_proto;
mod shapes_v1;

mod rules_access;
mod rules_asking;
mod rules_bindings;
mod rules_capabilities;
mod rules_card;
mod rules_card_interfaces;
mod rules_card_security;
mod rules_envelope;
mod rules_errors;
mod rules_grpc;
mod rules_lists;
mod rules_objects;
mod rules_push;
mod rules_push_delivery;
mod rules_requests;
mod rules_running;
mod rules_streams;
mod rules_subscriptions;
mod rules_tasks;
mod rules_versions;

mod report;
mod run;
mod selection;

pub use run::run;

//! What tests share: contract suites, a scripted agent, a clock to advance, small clients of HTTP and gRPC, an OpenID
//! provider, certificates of an authority of their own, a remote agent that does everything wrong, a real Postgres, a balancer, and the
//! real program as a child process, also in a terminal.

pub mod balancer;
pub mod certificates;
pub mod clock;
pub mod faulty;
pub mod grpc;
pub mod http;
pub mod oidc_keys;
pub mod oidc_provider;
pub mod postgres;
pub mod process;
pub mod remote;
pub mod scripted;
pub mod sse;
pub mod store_contract;
pub mod terminal;

//! The guarded client against real sockets. Nothing leaves the loopback interface.

mod cards;
mod credentials;
mod following;
mod hosts;
mod mutual_tls;
mod rebinding;
mod redirects;
mod ssrf;
mod support;
mod system_resolver;
mod tls;
mod webhooks;

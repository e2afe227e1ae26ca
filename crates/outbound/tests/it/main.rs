//! The guarded client against real sockets. Nothing leaves the loopback interface.

mod cards;
<<<<<<< HEAD
mod following;
=======
mod credentials;
>>>>>>> ab6bb21 (outbound: credentials for upstream servers)
mod hosts;
mod mutual_tls;
mod rebinding;
mod redirects;
mod ssrf;
mod support;
mod system_resolver;
mod tls;
mod webhooks;

//! gRPC over HTTP: what a request says in its headers, its message out of the body, the status behind the response.
//!
//! The messages themselves and their meaning are `wire`'s. Bodies are read within the same limits of size, time and memory as
//! those of the other bindings, and responses are the same pieces and streams with a prefix before each message. gRPC-Web is
//! the same with the trailers at the end of the body, so browsers can call, over HTTP/1.1 too.

mod compression;
mod head;
mod message;
mod response;
mod services;
mod trailers;

pub(crate) use head::{GrpcHead, deadline};
pub(crate) use response::Compressor;
pub(crate) use services::{health, reflection};
pub(crate) use trailers::trailers_of;

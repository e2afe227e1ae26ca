//! The remote agent of the testkit, seen on the wire: what it says when it is honest, and every fault that it can have; and the
//! servers that tests of several nodes need.

mod balancer;
mod calls;
mod postgres;
mod remote_cards;
mod remote_connections;
mod remote_content;
mod remote_operations;
mod remote_planted;
mod remote_streams;
mod rules;

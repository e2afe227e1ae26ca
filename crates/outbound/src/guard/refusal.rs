//! Why the guard refuses a URL.
//!
//! The sentences go to remote callers, so none of them says what a name resolved to, nor whether it resolved at all:
//! that would let callers map the inside network by asking.

/// The rule that a URL breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the URL is longer than {0} bytes")]
    TooLong(usize),
    #[error("the URL is malformed")]
    Malformed,
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    #[error("the URL must not contain a user name or password")]
    UserInfo,
    #[error("the host name is not ASCII: write it in its xn-- form")]
    NameNotAscii,
    #[error("the host is an address in an unusual spelling: write IPv4 as four decimal numbers, IPv6 without zone")]
    AddressSpelling,
    #[error("the port {0} is not allowed")]
    Port(u16),
    #[error("the host is not a public address")]
    Address,
    #[error("the host name does not resolve to a public address")]
    ResolvedAddress,
    #[error("the redirect leads from https to http")]
    Downgrade,
    #[error("the redirect shows a secret of the URL's query to another host")]
    SecretInRedirect,
}

impl Refusal {
    /// Whether the same URL will be refused whenever it is tried. A name may resolve to something else later: while
    /// a resolver is broken, it may answer with private addresses for everything.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Refusal::ResolvedAddress)
    }
}

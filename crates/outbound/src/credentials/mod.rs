//! What Sabir shows of itself to upstream servers: other A2A servers that it calls.
//!
//! ```text
//! CredentialSettings --UpstreamCredentials::new--> headers and a secret of the query, which are fixed
//!                                                  TokenCache --> TokenFetcher --> a file or a token endpoint
//! ```
//!
//! The operator gives the credentials for an upstream. What callers of Sabir show to it is never passed on. Credentials belong
//! to the origins of their upstream: a request to any other one is refused them, whatever a card or a redirect says.

mod error;
mod mask;
mod origin;
mod secret;
mod sendable;
mod settings;
mod token_answer;
mod token_cache;
mod token_fetcher;
mod token_file;
mod token_form;
mod token_state;
mod upstream;

pub use error::{CredentialError, InvalidCredentials};
pub use secret::Secret;
pub use settings::{
    ApiKey, ApiKeyPlace, Authentication, ClientAuthentication, ClientCredentials, CredentialSettings, OauthClient,
    RequestedAccess, TokenEndpoint, TokenExchange, TokenInput,
};
pub use upstream::{ShownToken, UpstreamCredentials};

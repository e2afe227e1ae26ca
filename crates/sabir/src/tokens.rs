//! `sabir token new` and `sabir token hash`: secrets for callers, and the tables that let them in.

use sabir_server::{Digest, random_secret};
use serde_json::json;

use crate::config::Audience;

/// Whose secret it is to be, and how it is shown.
pub struct TokenRequest<'a> {
    pub subject: &'a str,
    pub tenant: Option<&'a str>,
    /// Empty: those of the default.
    pub scopes: &'a [String],
    pub is_api_key: bool,
}

/// A new secret with its table.
pub fn new(request: &TokenRequest<'_>, audience: Audience) -> String {
    let secret = random_secret();
    let digest = Digest::of(secret.as_bytes());
    let table = table(request, &digest);
    match audience {
        Audience::Program => {
            let object = json!({
                "token": secret,
                "hash": digest.to_string(),
                "subject": request.subject,
                "toml": table,
            });
            format!("{object}\n")
        }
        Audience::Person => {
            let shown_in = if request.is_api_key { "X-API-Key: TOKEN" } else { "Authorization: Bearer TOKEN" };
            format!(
                "{secret}\n\nThe caller sends it as {shown_in}. It is stored nowhere: who has this output has the only \
                 copy.\nThe server lets it in with this in sabir.toml:\n\n{table}"
            )
        }
    }
}

/// The hash of a secret that exists already.
pub fn hash(secret: &str) -> anyhow::Result<String> {
    let secret = secret.strip_suffix('\n').unwrap_or(secret);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    anyhow::ensure!(
        !secret.is_empty(),
        "there is no token on the standard input; try: printf %s \"$TOKEN\" | sabir token hash"
    );
    let fits = secret.bytes().all(|byte| byte.is_ascii_graphic());
    anyhow::ensure!(fits, "the token has spaces or characters that a header cannot carry");
    Ok(format!("{}\n", Digest::of(secret.as_bytes())))
}

fn table(request: &TokenRequest<'_>, digest: &Digest) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let list = if request.is_api_key { "api_key" } else { "token" };
    let mut table = format!("[[auth.{list}]]\nsubject = {}\n", quoted(request.subject));
    if let Some(tenant) = request.tenant {
        table += &format!("tenant = {}\n", quoted(tenant));
    }
    table += &format!("hash = \"{digest}\"\n");
    if !request.scopes.is_empty() {
        let scopes: Vec<String> = request.scopes.iter().map(|scope| quoted(scope)).collect();
        table += &format!("scopes = [{}]\n", scopes.join(", "));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_known_by_its_hash() {
        let scopes = vec!["run:coder".to_owned(), "admin".to_owned()];
        let request = TokenRequest { subject: "al\"ice", tenant: Some("acme"), scopes: &scopes, is_api_key: false };
        let made: serde_json::Value = serde_json::from_str(&new(&request, Audience::Program)).unwrap();
        let token = made["token"].as_str().unwrap();
        assert_eq!(format!("{}\n", made["hash"].as_str().unwrap()), hash(&format!("{token}\n")).unwrap());
        let table: toml::Table = made["toml"].as_str().unwrap().parse().unwrap();
        let table = &table["auth"]["token"][0];
        assert_eq!((table["subject"].as_str(), table["tenant"].as_str()), (Some("al\"ice"), Some("acme")));
        assert_eq!(table["scopes"].as_array().unwrap().len(), 2);
        let other: serde_json::Value = serde_json::from_str(&new(&request, Audience::Program)).unwrap();
        assert_ne!(other["token"], made["token"]);
        let text = new(&request, Audience::Person);
        assert!(text.contains("[[auth.token]]") && text.contains("Bearer"), "{text}");
    }

    #[test]
    fn only_what_a_header_can_carry_is_hashed() {
        for (text, fits) in
            [("secret", true), ("secret\r\n", true), ("", false), ("\n", false), ("a b", false), ("é", false)]
        {
            assert_eq!(hash(text).is_ok(), fits, "{text:?}");
        }
    }
}

//! Bearer tokens from files, which others rotate.

use std::path::Path;

use sabir_outbound::credentials::{Authentication, TokenInput, UpstreamCredentials};

use super::fixture::{credentials, shown, shown_after, shown_text};

fn write(file: &Path, token: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, token).unwrap();
    std::fs::rename(new, file).unwrap();
}

fn of_file(file: &Path) -> UpstreamCredentials {
    credentials(Authentication::Bearer(TokenInput::File(file.to_owned())))
}

#[tokio::test]
async fn a_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    write(&file, "first\n");
    let credentials = of_file(&file);
    assert_eq!(shown_text(&credentials).await, "Bearer first");
    write(&file, "second\n");
    assert_eq!(shown_after(&credentials, "Bearer first").await, "Bearer second");
}

#[tokio::test]
async fn a_refusal_has_the_file_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    write(&file, "first");
    let credentials = of_file(&file);
    let (_, first) = shown(&credentials).await.unwrap();
    write(&file, "second");
    assert!(credentials.forget(first));
    assert_eq!(shown_text(&credentials).await, "Bearer second");
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let error = shown(&of_file(&file)).await.unwrap_err().to_string();
    assert_eq!(error, format!("the token file {} does not exist", file.display()));
    write(&file, "geheim two");
    let error = shown(&of_file(&file)).await.unwrap_err().to_string();
    assert!(error.ends_with("does not hold a token: one word of visible ASCII characters"), "{error}");
}

//! Reads a token from a file.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::error::CredentialError;
use super::secret::Secret;
use super::sendable::is_token;

/// No token is larger; a file that is was named by mistake.
const LARGEST: u64 = 64 * 1024;

/// Blocks. White space around the token is left out.
pub(super) fn read(path: &Path) -> Result<Secret, CredentialError> {
    let unusable = |why: &str| CredentialError::File { path: path.display().to_string(), why: why.to_owned() };
    let bytes = bytes(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unusable("does not exist"),
        ErrorKind::PermissionDenied => unusable("may not be read by this user"),
        ErrorKind::IsADirectory => unusable("is a folder"),
        kind => unusable(&format!("cannot be read: {kind}")),
    })?;
    let token = std::str::from_utf8(&bytes).map(str::trim).ok();
    match token {
        Some("") => Err(unusable("is empty")),
        Some(token) if is_token(token) => Ok(Secret::new(token)),
        _ => Err(unusable("does not hold a token: one word of visible ASCII characters")),
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let huge = "x".repeat(1 << 20);
        for (content, expected) in [
            (&b"token"[..], "token"),
            (b"\n token\r\n", "token"),
            (b" \n", "is empty"),
            (b"two words", "does not hold a token"),
            (b"\xff", "does not hold a token"),
            (huge.as_bytes(), "does not hold a token"),
        ] {
            std::fs::write(&path, content).unwrap();
            let outcome = read(&path).map(|token| token.as_str().to_owned()).unwrap_or_else(|error| error.to_string());
            assert!(outcome.contains(expected), "{expected}: {outcome}");
        }
        for (path, expected) in [(folder.path().join("other"), "does not exist"), (folder.path().into(), "is a folder")]
        {
            assert!(read(&path).unwrap_err().to_string().ends_with(expected));
        }
    }
}

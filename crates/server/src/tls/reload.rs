//! Certificates that are renewed while the server runs.
//!
//! The files are looked at every few seconds, and at once on SIGHUP. Only if one of them is another file than before, or
//! was written, are they read; only if their bytes differ are they put in force. Files that cannot be used change
//! nothing and are told once. Programs that renew a pair write one file after the other, so such files are believed to
//! be wrong only when they are so at two looks.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

use super::files::{Contents, TlsError, TlsFile, TlsSettings};
use super::{Tls, server_config};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// What a look at the files has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// What is in force is what the files say, as far as they can be used.
    Unchanged,
    /// New files are in force, for connections from now on.
    Renewed,
    /// The new files cannot be used; those from before stay in force.
    Broken(TlsError),
}

/// How urgently the files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Once in a while.
    Routine,
    /// Somebody says that they have changed, and that this is all of it.
    Asked,
}

pub(super) type Identities = Vec<Option<Identity>>;

/// Tells a file from another one of the same name, and from itself before it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    number: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

/// What the latest look has seen.
pub(super) struct Looked {
    identities: Identities,
    /// Of the files that are in force.
    digest: [u8; 32],
    /// What was wrong at the latest look, and whether that was told.
    broken: Option<(TlsError, bool)>,
}

impl Looked {
    pub(super) fn new(identities: Identities, contents: &Contents) -> Self {
        Self { identities, digest: contents.digest(), broken: None }
    }
}

impl Tls {
    /// Looks at the files until nobody waits for it any more; `asked` asks for a look at once.
    pub async fn keep_current(self: Arc<Self>, asked: Arc<Notify>) {
        loop {
            let look = match tokio::time::timeout(LOOK_EVERY, asked.notified()).await {
                Ok(()) => Look::Asked,
                Err(_) => Look::Routine,
            };
            let tls = self.clone();
            // Files may be on a mount that hangs.
            let Ok(found) = tokio::task::spawn_blocking(move || tls.look(look)).await else { continue };
            match found {
                Reloaded::Renewed => tracing::info!(
                    certificate = %self.settings.certificate.display(),
                    "the new TLS files are in force for new connections"
                ),
                Reloaded::Broken(error) => {
                    let setting = match error.file {
                        TlsFile::Certificate => "server.tls_cert",
                        TlsFile::Key => "server.tls_key",
                        TlsFile::Authorities => "server.tls_client_ca",
                    };
                    tracing::warn!("{setting} {error}; the TLS files from before stay in force");
                }
                Reloaded::Unchanged if look == Look::Asked => tracing::info!("the TLS files have not changed"),
                Reloaded::Unchanged => {}
            }
        }
    }

    /// Looks at the files now, as on SIGHUP.
    pub fn reload(&self) -> Reloaded {
        self.look(Look::Asked)
    }

    fn look(&self, look: Look) -> Reloaded {
        let identities = identities(&self.settings);
        let mut looked = self.looked();
        let is_doubtful = matches!(looked.broken, Some((_, false)));
        if identities == looked.identities && !is_doubtful && look == Look::Routine {
            return Reloaded::Unchanged;
        }
        looked.identities = identities;
        let read = Contents::read(&self.settings).and_then(|contents| {
            let digest = contents.digest();
            let changed = (digest != looked.digest).then(|| server_config(&self.settings, &contents));
            Ok((digest, changed.transpose()?))
        });
        match read {
            Ok((digest, changed)) => {
                (looked.digest, looked.broken) = (digest, None);
                match changed {
                    Some(config) => {
                        self.replace(config);
                        Reloaded::Renewed
                    }
                    None => Reloaded::Unchanged,
                }
            }
            Err(error) => {
                let (is_known, was_told) = match &looked.broken {
                    Some((known, was_told)) => (*known == error, *was_told && *known == error),
                    None => (false, false),
                };
                let is_told = look == Look::Asked || is_known;
                looked.broken = Some((error.clone(), is_told || was_told));
                match is_told && (!was_told || look == Look::Asked) {
                    true => Reloaded::Broken(error),
                    false => Reloaded::Unchanged,
                }
            }
        }
    }
}

pub(super) fn identities(settings: &TlsSettings) -> Identities {
    let authorities = settings.clients.as_ref().map(|clients| &clients.authorities);
    [&settings.certificate, &settings.key].into_iter().chain(authorities).map(|path| identity(path)).collect()
}

/// Follows links, since renewed files are often other files behind the same link.
fn identity(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = {
        use std::os::unix::fs::MetadataExt;
        (metadata.dev(), metadata.ino())
    };
    #[cfg(not(unix))]
    let number = (0, 0);
    Some(Identity { number, length: metadata.len(), modified: metadata.modified().ok() })
}

#[cfg(test)]
mod tests {
    use sabir_testkit::certificates::{Authority, Wanted};

    use super::*;

    #[test]
    fn a_pair_that_is_being_written_is_not_complained_about_and_a_broken_one_once() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("servers");
        let write = |certificate: &str, key: &str| {
            authority.issue(&Wanted::server()).write(folder.path(), certificate, key);
        };
        write("cert.pem", "key.pem");
        let at = |name: &str| folder.path().join(name);
        let settings = TlsSettings { certificate: at("cert.pem"), key: at("key.pem"), clients: None };
        let tls = Tls::load(settings).unwrap();
        // The new pair; its halves are put in place one after the other.
        write("new.pem", "new.key");
        let steps: [(&dyn Fn(), Look, &str); 12] = [
            (&|| {}, Look::Routine, "unchanged"),
            (&|| {}, Look::Asked, "unchanged"),
            (&|| std::fs::rename(at("new.pem"), at("cert.pem")).unwrap(), Look::Routine, "unchanged"),
            (&|| std::fs::rename(at("new.key"), at("key.pem")).unwrap(), Look::Routine, "renewed"),
            (&|| {}, Look::Routine, "unchanged"),
            (&|| std::fs::remove_file(at("key.pem")).unwrap(), Look::Routine, "unchanged"),
            (&|| {}, Look::Routine, "broken"),
            (&|| {}, Look::Routine, "unchanged"),
            // Whoever asks is answered.
            (&|| {}, Look::Asked, "broken"),
            (&|| std::fs::write(at("key.pem"), "").unwrap(), Look::Routine, "unchanged"),
            (&|| {}, Look::Routine, "broken"),
            (&|| write("cert.pem", "key.pem"), Look::Routine, "renewed"),
        ];
        for (number, (change, look, expected)) in steps.into_iter().enumerate() {
            change();
            let found = match tls.look(look) {
                Reloaded::Unchanged => "unchanged",
                Reloaded::Renewed => "renewed",
                Reloaded::Broken(_) => "broken",
            };
            assert_eq!(found, expected, "step {number}");
        }
    }
}

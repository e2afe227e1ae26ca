//! `--dev-tls`: a certificate for this machine, made on the spot, so that clients that insist on HTTPS can be tried.
//!
//! An authority signs one certificate and its key is thrown away, so whoever trusts the authority trusts that certificate
//! and nothing else. All files lie in a folder beside the database and are used again while they are valid.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use sabir_model::Base64;
use sabir_server::{ClientCertificates, Tls, TlsSettings};

const DAY: Duration = Duration::from_secs(86_400);
const VALID_FOR: Duration = Duration::from_secs(365 * 86_400);

/// Files of a certificate for this machine.
pub struct DevCertificate {
    folder: PathBuf,
    /// Tasks in memory go with the server, and so does this.
    is_temporary: bool,
}

impl DevCertificate {
    /// The one beside this file (`StoreSection::local_file`), which is made if it is not there or does not fit. `name` is that
    /// of the machine.
    pub fn beside(local_file: Option<&Path>, name: Option<&str>) -> anyhow::Result<Self> {
        let names: Vec<&str> = ["localhost", "127.0.0.1", "::1"].into_iter().chain(name.filter(is_dns_name)).collect();
        let made = match local_file {
            Some(path) => Self { folder: folder_beside(path), is_temporary: false },
            None => Self { folder: new_temporary_folder()?, is_temporary: true },
        };
        if !made.is_fit(&names) {
            made.make(&names).with_context(|| {
                format!(
                    "cannot make the certificate of --dev-tls in {}; make the folder writable",
                    made.folder.display()
                )
            })?;
        }
        Ok(made)
    }

    pub fn settings(&self, clients: Option<ClientCertificates>) -> TlsSettings {
        TlsSettings { certificate: self.folder.join("cert.pem"), key: self.folder.join("key.pem"), clients }
    }

    /// The file that clients need.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    fn is_fit(&self, names: &[&str]) -> bool {
        let Ok(tls) = Tls::load(self.settings(None)) else { return false };
        let is_valid = tls.not_after().is_some_and(|not_after| not_after > SystemTime::now() + DAY);
        is_valid && self.authority().is_file() && names.iter().all(|name| tls.is_for(name))
    }

    fn make(&self, names: &[&str]) -> anyhow::Result<()> {
        let now = SystemTime::now();
        // Clocks of other machines may be a little behind.
        let (not_before, not_after) = (now - DAY, now + VALID_FOR);
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "Sabir --dev-tls");
        (params.not_before, params.not_after) = (not_before.into(), not_after.into());
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::default();
        for name in names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName((*name).try_into()?),
            });
        }
        params.distinguished_name.push(DnType::CommonName, "localhost");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (not_before.into(), not_after.into());
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;

        if !self.folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        }
        self.write("key.pem", 0o600, &pem("PRIVATE KEY", &key.serialize_der()))?;
        self.write("cert.pem", 0o644, &pem("CERTIFICATE", certificate.der()))?;
        self.write("ca.pem", 0o644, &pem("CERTIFICATE", authority.der()))
    }

    /// A new file in the place of the old one, so that nobody who may read the old one can read the new one.
    fn write(&self, name: &str, mode: u32, text: &str) -> anyhow::Result<()> {
        let file = self.folder.join(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(file)?;
        Ok(file.write_all(text.as_bytes())?)
    }
}

impl Drop for DevCertificate {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The authority of the server whose files lie beside this one, as DER.
pub fn authority_beside(local_file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(local_file) = local_file else {
        anyhow::bail!("a server with tasks in memory and --dev-tls cannot be found; give its address with --url")
    };
    read_authority(&folder_beside(local_file).join("ca.pem"))
}

/// An authority from its file, as DER.
pub fn read_authority(file: &Path) -> anyhow::Result<Vec<u8>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; start the server with --dev-tls first", file.display()))?;
    let base64: String = text.lines().filter(|line| !line.starts_with('-')).collect();
    Ok(Base64::parse(base64).with_context(|| format!("{} is not PEM", file.display()))?.decode())
}

/// `sabir.db-tls` beside `sabir.db`.
fn folder_beside(database: &Path) -> PathBuf {
    let mut name = std::path::absolute(database).unwrap_or_else(|_| database.to_owned()).into_os_string();
    name.push("-tls");
    name.into()
}

/// Others may write to the folder above, so this one must be new.
fn new_temporary_folder() -> anyhow::Result<PathBuf> {
    let names = (0..).map(|number| format!("sabir-{}-tls-{number}", std::process::id()));
    for folder in names.take(100).map(|name| std::env::temp_dir().join(name)) {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(format!("cannot make the folder {}", folder.display())),
        }
    }
    anyhow::bail!("cannot make a folder for the certificate of --dev-tls in {}", std::env::temp_dir().display())
}

/// Names that clients can ask for; some machines are called otherwise.
fn is_dns_name(name: &&str) -> bool {
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_address = name.parse::<Ipv4Addr>().is_ok() || name.parse::<Ipv6Addr>().is_ok();
    name.len() <= 253 && name.split('.').all(is_label) && !is_address
}

fn pem(label: &str, der: &[u8]) -> String {
    let base64 = Base64::encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in base64.as_str().as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_certificate_is_used_again_while_it_fits() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("sabir.db");
        let mut seen = Vec::new();
        for (name, spoil, is_new) in [
            (Some("box"), None, true),
            (Some("box"), None, false),
            // A name that no client can ask for.
            (Some("my_box"), None, false),
            (Some("other.box"), None, true),
            (None, Some("ca.pem"), true),
            (None, Some("key.pem"), true),
            (None, None, false),
        ] {
            if let Some(file) = spoil {
                std::fs::remove_file(folder.path().join("sabir.db-tls").join(file)).unwrap();
            }
            let made = DevCertificate::beside(Some(&database), name).unwrap();
            let read = ["ca.pem", "cert.pem", "key.pem"].map(|file| std::fs::read(made.folder.join(file)).unwrap());
            assert_eq!(!seen.contains(&read), is_new, "{name:?} {spoil:?}");
            seen.push(read);
            let tls = Tls::load(made.settings(None)).unwrap();
            for name in ["localhost", "127.0.0.1", "::1"].into_iter().chain(name.filter(is_dns_name)) {
                assert!(tls.is_for(name), "{name}");
            }
            assert!(!tls.is_for("example.com"));
            let mode = |file: &str| made.folder.join(file).metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(""), mode("key.pem")), (0o700, 0o600));
        }
    }

    #[test]
    fn with_tasks_in_memory_it_goes_with_the_server() {
        let made = DevCertificate::beside(None, None).unwrap();
        let folder = made.folder.clone();
        assert!(made.authority().is_file());
        drop(made);
        assert!(!folder.exists());
    }
}

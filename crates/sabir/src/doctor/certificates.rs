//! The certificate of the server and its key.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use sabir_server::Tls;

use crate::config::{self, Problems};

use super::Subject;
use super::finding::{Area, Finding, Level};

const AREA: Area = Area::Certificates;
const DAY: Duration = Duration::from_secs(86_400);
/// Certificates are renewed a month before they expire; one that is closer to its end was forgotten.
const SOON: Duration = Duration::from_secs(14 * 86_400);

pub fn check(subject: &Subject) -> Vec<Finding> {
    let (loaded, server) = (&subject.loaded, &subject.loaded.config.server);
    if let Err(Problems(problems)) = loaded.check_tls() {
        let renew = |problem: &String| {
            let mut finding = Finding::of_words(AREA, Level::Problem, problem);
            if finding.next.is_empty() {
                finding.next =
                    "put the right files there, and see that the user of the server can read them".to_owned();
            }
            finding
        };
        return problems.iter().map(renew).collect();
    }
    let Some(settings) = config::tls_settings(server) else {
        let what = match server.dev_tls {
            true => "the server makes its own (--dev-tls), which is for trials",
            false => "none is configured: the server speaks HTTP",
        };
        return vec![Finding::ok(AREA, what)];
    };
    let mut findings = Vec::new();
    let is_shared = |path: &std::path::Path| path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o007 != 0);
    if is_shared(&settings.key) {
        findings.push(Finding::warning(
            AREA,
            format!("every user of this machine can read the key {}", settings.key.display()),
            format!("chmod o= {}", settings.key.display()),
        ));
    }
    let Ok(tls) = Tls::load(settings) else { return findings };
    findings.push(validity(tls.not_after(), SystemTime::now()));
    if let Some(host) = server.public_url.as_deref().and_then(config::host_of_url)
        && !tls.is_for(host)
    {
        findings.push(Finding::warning(
            AREA,
            format!("the certificate is not for {host}, which server.public_url names"),
            "get one for that name, unless a proxy in front has another certificate",
        ));
    }
    findings
}

fn validity(not_after: Option<SystemTime>, now: SystemTime) -> Finding {
    let Some(not_after) = not_after else {
        return Finding::warning(
            AREA,
            "when the certificate expires cannot be read",
            "look with `openssl x509 -enddate`",
        );
    };
    let days = |duration: Duration| duration.as_secs() / DAY.as_secs();
    match not_after.duration_since(now) {
        Err(past) => Finding::problem(
            AREA,
            format!("the certificate expired {} days ago, so clients refuse it", days(past.duration())),
            "renew it; the server takes new files within seconds",
        ),
        Ok(left) if left < SOON => Finding::warning(
            AREA,
            format!("the certificate expires in {} days", days(left)),
            "see why it was not renewed; the server takes new files within seconds",
        ),
        Ok(left) => Finding::ok(AREA, format!("the certificate can be used, and expires in {} days", days(left))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_expires_soon_is_told_of() {
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        for (not_after, expected) in [
            (Some(now + 90 * DAY), "ok the certificate can be used, and expires in 90 days"),
            (Some(now + 14 * DAY), "ok the certificate can be used, and expires in 14 days"),
            (Some(now + 13 * DAY), "warning the certificate expires in 13 days"),
            (Some(now), "warning the certificate expires in 0 days"),
            (Some(now - 3 * DAY), "problem the certificate expired 3 days ago, so clients refuse it"),
            (None, "warning when the certificate expires cannot be read"),
        ] {
            let found = validity(not_after, now);
            let level = match found.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Problem => "problem",
            };
            assert_eq!(format!("{level} {}", found.what), expected);
        }
    }
}

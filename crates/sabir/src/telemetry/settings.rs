//! Reads the variables of the OpenTelemetry specification. What is malformed is told and ignored, as the specification wants
//! it: the same environment is often shared by many programs, and traces must not keep a server from starting.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::sampler::Sampler;

/// Where a collector is by default.
const LOCAL_COLLECTOR: &str = "http://localhost:4318";
const TRACES_PATH: &str = "/v1/traces";

#[derive(Debug)]
pub(super) struct TraceSettings {
    /// The URL that spans are posted to.
    pub(super) endpoint: String,
    pub(super) headers: HeaderMap,
    /// A file with roots that sign the collector's certificate.
    pub(super) certificate: Option<PathBuf>,
    /// For one request.
    pub(super) timeout: Duration,
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
    pub(super) batches: BatchSettings,
}

/// How spans are gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BatchSettings {
    /// How long a span waits for others.
    pub(super) delay: Duration,
    /// How many spans wait at most.
    pub(super) queue: usize,
    /// How many spans are in one request at most.
    pub(super) size: usize,
    /// For a batch, with all attempts.
    pub(super) timeout: Duration,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self { delay: Duration::from_secs(5), queue: 2048, size: 512, timeout: Duration::from_secs(30) }
    }
}

impl TraceSettings {
    /// The endpoint for the log, without what may be a secret: user name, password, query and fragment.
    pub(super) fn shown_endpoint(&self) -> String {
        without_secrets(&self.endpoint)
    }

    /// `None`: nothing says where spans should go. The warnings are about variables that were ignored.
    pub(super) fn read(variables: &[(OsString, OsString)], node: Option<&str>) -> (Option<Self>, Vec<String>) {
        let mut reader = Reader { variables, warnings: Vec::new() };
        let Some(endpoint) = reader.endpoint() else { return (None, reader.warnings) };
        let settings = Self {
            endpoint,
            headers: reader.headers(),
            certificate: reader.otlp("CERTIFICATE").map(|(_, file)| file.into()),
            timeout: reader.milliseconds_of_otlp("TIMEOUT", Duration::from_secs(10)),
            resource: reader.resource(node),
            sampler: reader.sampler(),
            batches: reader.batches(),
        };
        reader.warn_about_format();
        (Some(settings), reader.warnings)
    }
}

struct Reader<'a> {
    variables: &'a [(OsString, OsString)],
    warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    /// An empty variable is like none.
    fn text(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.variables.iter().find(|(known, _)| known == name)?;
        value.to_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// `OTEL_EXPORTER_OTLP_TRACES_...`, or else `OTEL_EXPORTER_OTLP_...`: the name and the value.
    fn otlp(&self, name: &str) -> Option<(String, &'a str)> {
        ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].into_iter().find_map(|prefix| {
            let name = format!("{prefix}{name}");
            let value = self.text(&name)?;
            Some((name, value))
        })
    }

    fn endpoint(&mut self) -> Option<String> {
        if self.text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return None;
        }
        let wanted = match self.text("OTEL_TRACES_EXPORTER") {
            Some("none") => return None,
            Some("otlp") => true,
            Some(other) => {
                let why =
                    format!("OTEL_TRACES_EXPORTER={other} is not known, so no traces are sent: write otlp or none");
                self.warnings.push(why);
                return None;
            }
            None => false,
        };
        if let Some(endpoint) = self.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            return Some(endpoint.to_owned());
        }
        let base = self.text("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| wanted.then_some(LOCAL_COLLECTOR))?;
        Some(format!("{}{TRACES_PATH}", base.trim_end_matches('/')))
    }

    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((variable, text)) = self.otlp("HEADERS") else { return headers };
        for (name, value) in pairs(text) {
            let header = value.and_then(|value| {
                let name = HeaderName::try_from(name).ok()?;
                let mut value = HeaderValue::try_from(value).ok()?;
                value.set_sensitive(true);
                Some((name, value))
            });
            match header {
                Some((name, value)) => drop(headers.insert(name, value)),
                // The value is not shown: it may be a secret.
                None => {
                    self.warnings.push(format!("{variable}: the header {name:?} cannot be sent, so it is left out"))
                }
            }
        }
        headers
    }

    fn resource(&mut self, node: Option<&str>) -> Vec<(String, String)> {
        let mut resource = vec![("service.name".to_owned(), "sabir".to_owned())];
        let mut set = |name: &str, value: String| {
            resource.retain(|(known, _)| known != name);
            resource.push((name.to_owned(), value));
        };
        set("service.version", env!("CARGO_PKG_VERSION").to_owned());
        if let Some(node) = node {
            set("service.instance.id", node.to_owned());
        }
        set("telemetry.sdk.name", "sabir".to_owned());
        set("telemetry.sdk.language", "rust".to_owned());
        set("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned());
        for (name, value) in pairs(self.text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
            match value {
                Some(value) if !name.is_empty() => set(name, value),
                _ => self.warnings.push(format!(
                    "OTEL_RESOURCE_ATTRIBUTES: {name:?} is no name=value, or not well percent-encoded; it is left out"
                )),
            }
        }
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            set("service.name", name.to_owned());
        }
        resource
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.text("OTEL_TRACES_SAMPLER") else { return Sampler::default() };
        match Sampler::parse(name, self.text("OTEL_TRACES_SAMPLER_ARG")) {
            Ok(sampler) => sampler,
            Err(why) => {
                self.warnings.push(format!("{why}; parentbased_always_on is used"));
                Sampler::default()
            }
        }
    }

    fn batches(&mut self) -> BatchSettings {
        let usual = BatchSettings::default();
        let queue = self.count("OTEL_BSP_MAX_QUEUE_SIZE", usual.queue);
        BatchSettings {
            delay: self.milliseconds("OTEL_BSP_SCHEDULE_DELAY", usual.delay),
            queue,
            size: self.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", usual.size.min(queue)).min(queue),
            timeout: self.milliseconds("OTEL_BSP_EXPORT_TIMEOUT", usual.timeout),
        }
    }

    fn count(&mut self, name: &str, usual: usize) -> usize {
        let Some(text) = self.text(name) else { return usual };
        match text.parse() {
            Ok(count) if count > 0 => count,
            _ => {
                self.warnings.push(format!("{name}={text} must be a whole number above 0; {usual} is used"));
                usual
            }
        }
    }

    fn milliseconds_of_otlp(&mut self, name: &str, usual: Duration) -> Duration {
        match self.otlp(name) {
            Some((variable, _)) => self.milliseconds(&variable, usual),
            None => usual,
        }
    }

    fn milliseconds(&mut self, name: &str, usual: Duration) -> Duration {
        let Some(text) = self.text(name) else { return usual };
        match text.parse() {
            Ok(milliseconds) => Duration::from_millis(milliseconds),
            Err(_) => {
                let usual_text = usual.as_millis();
                self.warnings.push(format!("{name}={text} must be a number of milliseconds; {usual_text} is used"));
                usual
            }
        }
    }

    fn warn_about_format(&mut self) {
        if let Some((name, protocol)) = self.otlp("PROTOCOL")
            && protocol != "http/protobuf"
        {
            self.warnings.push(format!("{name}={protocol} is not spoken; spans are sent as http/protobuf"));
        }
        if let Some((name, compression)) = self.otlp("COMPRESSION")
            && compression != "none"
        {
            self.warnings.push(format!("{name}={compression} is not supported; spans are sent uncompressed"));
        }
    }
}

/// A URL without user name, password, query and fragment. It may be malformed: where it is not clear what belongs to a
/// password, the host is left out too.
fn without_secrets(url: &str) -> String {
    const LEFT_OUT: &str = "...";
    let (scheme, rest) = url.find("://").map_or(("", url), |place| url.split_at(place + "://".len()));
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.:/".contains(&byte);
    let scheme = if scheme.bytes().all(is_scheme) { scheme } else { LEFT_OUT };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    // A password with one of `/?#` that is not percent-encoded.
    if user_info.is_none() && path.contains('@') {
        return format!("{scheme}{LEFT_OUT}");
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}{host}{path}")
}

/// `name=value,name=value`, with percent-encoded values. `None` in place of a value: there is none, or it is not well encoded.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Option<String>)> {
    text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name.trim(), percent_decoded(value.trim())),
        None => (pair, None),
    })
}

/// A `+` is itself, as in a header.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: u8| (byte as char).to_digit(16);
                (digit(bytes.next()?)? * 16 + digit(bytes.next()?)?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[&str]) -> (Option<TraceSettings>, Vec<String>) {
        let pair = |text: &&str| text.split_once('=').map(|(name, value)| (name.into(), value.into()));
        TraceSettings::read(&variables.iter().filter_map(pair).collect::<Vec<_>>(), Some("node-1"))
    }

    #[test]
    fn traces_need_a_place_to_go_to() {
        for (variables, expected) in [
            (&[][..], None),
            (&["OTEL_SERVICE_NAME=a", "OTEL_TRACES_SAMPLER=always_on"], None),
            (&["OTEL_EXPORTER_OTLP_ENDPOINT="], None),
            (&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"], Some("http://c:4318/v1/traces")),
            (&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/"], Some("http://c:4318/v1/traces")),
            (&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c/otlp"], Some("http://c/otlp/v1/traces")),
            (&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/here"], Some("http://c/here")),
            (
                &["OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b/"],
                Some("http://b/"),
            ),
            (&["OTEL_TRACES_EXPORTER=otlp"], Some("http://localhost:4318/v1/traces")),
            (&["OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c"], None),
            (&["OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c"], None),
            (&["OTEL_SDK_DISABLED=false", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c"], Some("http://c/v1/traces")),
        ] {
            let (settings, warnings) = read(variables);
            assert_eq!(settings.map(|settings| settings.endpoint).as_deref(), expected, "{variables:?}");
            assert_eq!(warnings, [""; 0], "{variables:?}");
        }
    }

    #[test]
    fn an_endpoint_is_shown_without_its_secrets() {
        for (endpoint, expected) in [
            ("https://collector.example:4318/v1/traces", "https://collector.example:4318/v1/traces"),
            ("https://user:geheim@collector.example/v1/traces", "https://collector.example/v1/traces"),
            ("https://geheim@collector.example", "https://collector.example"),
            ("https://user:geheim@geheim@collector.example/a", "https://collector.example/a"),
            ("https://collector.example/v1/traces?key=geheim#geheim", "https://collector.example/v1/traces"),
            ("https://collector.example?key=geheim/v1/traces", "https://collector.example"),
            ("https://collector.example#geheim/v1/traces", "https://collector.example"),
            // No URL, or not a clear one.
            ("https://user:ge/heim@collector.example/v1/traces", "https://..."),
            ("https://user:ge?heim@collector.example/v1/traces", "https://..."),
            ("https://user:ge#heim@collector.example/v1/traces", "https://..."),
            ("https:/user:geheim@collector.example/v1/traces", "..."),
            ("user:geheim@collector.example:4318/v1/traces", "collector.example:4318/v1/traces"),
            ("user:geheim@x://collector.example", "...collector.example"),
            ("collector.example:4318", "collector.example:4318"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(endpoint), expected, "{endpoint}");
        }
    }

    #[test]
    fn what_is_malformed_is_named_and_ignored() {
        for (variable, expected) in [
            ("OTEL_TRACES_EXPORTER=zipkin", "OTEL_TRACES_EXPORTER=zipkin is not known"),
            (
                "OTEL_BSP_SCHEDULE_DELAY=soon",
                "OTEL_BSP_SCHEDULE_DELAY=soon must be a number of milliseconds; 5000 is used",
            ),
            ("OTEL_BSP_MAX_QUEUE_SIZE=0", "OTEL_BSP_MAX_QUEUE_SIZE=0 must be a whole number above 0; 2048 is used"),
            ("OTEL_TRACES_SAMPLER=xray", "OTEL_TRACES_SAMPLER=xray is not known"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not spoken"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=gzip",
                "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=gzip is not supported",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT=1s", "OTEL_EXPORTER_OTLP_TIMEOUT=1s must be a number of milliseconds"),
            ("OTEL_EXPORTER_OTLP_HEADERS=a b=secret", "OTEL_EXPORTER_OTLP_HEADERS: the header \"a b\" cannot be sent"),
            ("OTEL_RESOURCE_ATTRIBUTES=a=%zz", "OTEL_RESOURCE_ATTRIBUTES: \"a\" is no name=value"),
        ] {
            let (_, warnings) = read(&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c", variable]);
            let [warning] = &warnings[..] else { panic!("{variable}: {warnings:?}") };
            assert!(warning.starts_with(expected) && !warning.contains("secret"), "{warning}");
        }
    }

    #[test]
    fn headers_resource_and_batches() {
        let (settings, warnings) = read(&[
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://c",
            "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a%3Db, x-team = red+blue",
            "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test,service.name=from-attributes,a=b%2Cc",
            "OTEL_SERVICE_NAME=agents",
            "OTEL_BSP_SCHEDULE_DELAY=100",
            "OTEL_BSP_MAX_QUEUE_SIZE=64",
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=250",
        ]);
        let settings = settings.unwrap();
        assert_eq!(warnings, [""; 0]);
        let header = |name: &str| settings.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!((header("authorization"), header("x-team")), ("Bearer a=b".into(), "red+blue".into()));
        let of = |name: &str| {
            let mut values =
                settings.resource.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
            (values.next().unwrap_or_default(), values.next())
        };
        assert_eq!(of("service.name"), ("agents", None));
        assert_eq!(of("service.instance.id"), ("node-1", None));
        assert_eq!((of("a"), of("deployment.environment.name")), (("b,c", None), ("test", None)));
        assert_eq!(settings.timeout, Duration::from_millis(250));
        let usual = BatchSettings::default();
        assert_eq!(
            settings.batches,
            BatchSettings { delay: Duration::from_millis(100), queue: 64, size: 64, timeout: usual.timeout }
        );
    }
}

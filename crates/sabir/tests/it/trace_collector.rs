//! A collector of traces on this machine. It reads what it gets with the published messages of OTLP, so that what is sent is
//! OTLP and not only what its sender takes for it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use sabir_testkit::process::SabirOptions;

const LIMIT: Duration = Duration::from_secs(60);

pub struct TraceCollector {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Export>>>,
    status: Arc<AtomicU16>,
    refused: Arc<AtomicUsize>,
    retry_after: Arc<Mutex<Option<String>>>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Export {
    pub line: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub resource: BTreeMap<String, String>,
    pub spans: Vec<CollectedSpan>,
}

/// A span with its ids in hexadecimal digits.
#[derive(Debug, Clone)]
pub struct CollectedSpan {
    pub name: String,
    /// `SERVER` or `INTERNAL`.
    pub kind: &'static str,
    pub trace: String,
    pub id: String,
    /// Empty: it is the first of its trace.
    pub parent: String,
    pub state: String,
    /// Trace and span.
    pub links: Vec<(String, String)>,
    pub attributes: BTreeMap<String, String>,
    /// The message of a status that says error.
    pub error: Option<String>,
    pub nanoseconds: u64,
}

impl CollectedSpan {
    /// An attribute; empty where it is missing.
    pub fn of(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// Trace and span, as a link or `traceparent` names them.
    pub fn ids(&self) -> (String, String) {
        (self.trace.clone(), self.id.clone())
    }
}

impl TraceCollector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (received, status) = (Arc::<Mutex<Vec<Export>>>::default(), Arc::new(AtomicU16::new(200)));
        let refused = Arc::<AtomicUsize>::default();
        let retry_after = Arc::<Mutex<Option<String>>>::default();
        let shared = (received.clone(), status.clone(), refused.clone(), retry_after.clone());
        // It ends with the tests: nobody waits for it.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (received, status, refused, retry_after) = shared.clone();
                std::thread::spawn(move || drop(serve(connection, &received, &status, &refused, &retry_after)));
            }
        });
        Self { address, received, status, refused, retry_after }
    }

    /// The status of all answers from now on. 0: it takes requests and never answers.
    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// The `Retry-After` of all answers with another status than 200.
    pub fn ask_to_wait(&self, seconds: &str) {
        *self.retry_after.lock().unwrap() = Some(seconds.to_owned());
    }

    /// How many requests were answered with another status than 200.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// The server sends spans here, soon after they end.
    pub fn of_server(&self, options: SabirOptions) -> SabirOptions {
        options
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", self.address))
            .variable("OTEL_BSP_SCHEDULE_DELAY", "20")
    }

    pub fn exports(&self) -> Vec<Export> {
        self.received.lock().unwrap().clone()
    }

    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.exports().into_iter().flat_map(|export| export.spans).collect()
    }

    /// The spans of a trace, as soon as there are so many.
    pub fn trace(&self, trace: &str, count: usize) -> Vec<CollectedSpan> {
        self.when(&format!("{count} spans of {trace}"), |spans| {
            let spans: Vec<_> = spans.into_iter().filter(|span| span.trace == trace).collect();
            (spans.len() >= count).then_some(spans)
        })
    }

    /// The only span of this name, as soon as it is there.
    pub fn span(&self, name: &str) -> CollectedSpan {
        let mut found = self.when(name, |spans| {
            let spans: Vec<_> = spans.into_iter().filter(|span| span.name == name).collect();
            (!spans.is_empty()).then_some(spans)
        });
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    pub fn when<T>(&self, what: &str, check: impl Fn(Vec<CollectedSpan>) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = check(self.spans()) {
                return found;
            }
            let spans = || self.spans().iter().map(|span| format!("{span:?}")).collect::<Vec<_>>().join("\n");
            assert!(start.elapsed() < LIMIT, "waited in vain for {what}; there is\n{}", spans());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn serve(
    connection: TcpStream,
    received: &Mutex<Vec<Export>>,
    status: &AtomicU16,
    refused: &AtomicUsize,
    retry_after: &Mutex<Option<String>>,
) -> std::io::Result<()> {
    let mut answers = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let status = status.load(Ordering::SeqCst);
        if status == 200 {
            let export = export(line.trim_end().to_owned(), headers, &body);
            received.lock().unwrap().push(export);
        }
        if status == 0 {
            // Until the other side gives up.
            let _ = reader.read(&mut [0]);
            return Ok(());
        }
        let retry_after = retry_after.lock().unwrap().clone().filter(|_| status != 200);
        let retry_after = retry_after.map_or(String::new(), |seconds| format!("Retry-After: {seconds}\r\n"));
        let text = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/x-protobuf\r\n{retry_after}Content-Length: 0\r\n\r\n"
        );
        answers.write_all(text.as_bytes())?;
        if status != 200 {
            refused.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn export(line: String, headers: BTreeMap<String, String>, body: &[u8]) -> Export {
    let request = ExportTraceServiceRequest::decode(body).expect("it is OTLP");
    let mut resource = BTreeMap::new();
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        resource.extend(attributes(of_resource.resource.map(|resource| resource.attributes).unwrap_or_default()));
        spans.extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans).map(collected));
    }
    Export { line, headers, resource, spans }
}

fn collected(span: Span) -> CollectedSpan {
    let links = span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect();
    CollectedSpan {
        kind: match span.kind {
            1 => "INTERNAL",
            2 => "SERVER",
            _ => "another",
        },
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        links,
        error: span.status.filter(|status| status.code == 2).map(|status| status.message),
        nanoseconds: span.end_time_unix_nano.checked_sub(span.start_time_unix_nano).expect("it ends after its start"),
        attributes: attributes(span.attributes),
        name: span.name,
        state: span.trace_state,
    }
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => panic!("{other:?}"),
    };
    let all = all.into_iter().map(|pair| (pair.key, text(pair.value.and_then(|value| value.value))));
    let count = all.len();
    let map: BTreeMap<_, _> = all.collect();
    assert_eq!(map.len(), count, "no name is there twice: {map:?}");
    map
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

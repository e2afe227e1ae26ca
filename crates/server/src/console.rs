//! `/console`: the pages for people, which are files in the binary.
//!
//! The files are public and hold no data: what they show they fetch themselves, as any other A2A client with the caller's
//! credential. `/console/assets/NAME` is a file; every other path below `/console` is a page, and all pages are the same
//! `index.html`, which looks at its address. It names its files relative to the address, so the console also works behind a proxy
//! that puts a path in front. Browsers get the files compressed.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use crate::body::Body;
use crate::etag::{etag_of, matches_etag};

const BASE: &str = "/console";
const ASSETS: &str = "assets/";

/// Scripts and styles come from files of this server only, and nothing that a page shows can make it load anything else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const INDEX: &str = include_str!("../console/index.html");

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../console/", $name)))),*] };
}

/// Every file that a page may load.
const FILES: &[(&str, &str)] = files![
    "agents.js"
    "api.js"
    "app.js"
    "boxes.js"
    "clipboard.js"
    "connection.js"
    "deliveries.js"
    "dom.js"
    "format.js"
    "frames.js"
    "hidden_letters.js"
    "icon.svg"
    "keys.js"
    "login.js"
    "markdown.js"
    "parts.js"
    "question.js"
    "send_form.js"
    "snippets.js"
    "state.js"
    "storage.js"
    "style.css"
    "system.js"
    "task.js"
    "tasks.js"
    "theme.js"
    "timeline.js"
    "timeline_rows.js"
    "waiting.js"
];

/// The same files as gzip, in the same order; made once.
static COMPRESSED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| FILES.iter().map(|(_, content)| gzip(content)).collect());

/// Whether a server has the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Console {
    #[default]
    Served,
    Off,
}

/// What of the path follows the base; `None`: it is not the console's.
pub(crate) fn path_below_base(path: &str) -> Option<&str> {
    path.strip_prefix(BASE).filter(|below| below.is_empty() || below.starts_with('/'))
}

/// A file or a page. Whoever has it already is told that it is the same.
pub(crate) fn answer(parts: &Parts, below: &str) -> Response<Body> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "the console's files can only be read\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let asset = below.strip_prefix('/').and_then(|below| below.strip_prefix(ASSETS));
    let Some(asset) = asset else {
        let page = INDEX.replace("@assets/", &assets_from(below));
        return file(parts, "index.html", page.as_bytes(), Encoding::Identity, page.clone().into_bytes());
    };
    let Some(index) = FILES.iter().position(|(name, _)| *name == asset) else {
        return text(StatusCode::NOT_FOUND, "the console has no such file; its pages are at /console\n");
    };
    let (name, content) = FILES[index];
    match accepts_gzip(&parts.headers) {
        true => file(parts, name, content.as_bytes(), Encoding::Gzip, COMPRESSED[index].clone()),
        false => file(parts, name, content.as_bytes(), Encoding::Identity, content.as_bytes().to_vec()),
    }
}

/// How the bytes of an answer are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

fn file(parts: &Parts, name: &str, content: &[u8], encoding: Encoding, encoded: Vec<u8>) -> Response<Body> {
    let etag = etag_of("console", content);
    let is_known = matches_etag(&parts.headers, &etag);
    let mut response = match is_known {
        true => with_status(StatusCode::NOT_MODIFIED, Body::empty()),
        false => Response::new(Body::from(encoded)),
    };
    let headers = response.headers_mut();
    if !is_known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
        if encoding == Encoding::Gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    headers.insert(header::ETAG, etag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    protect(headers);
    response
}

/// Whether the client says that it reads gzip. One that says `gzip;q=0` does not.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    listed.flat_map(|value| value.split(',')).any(|coding| {
        let mut words = coding.split(';').map(str::trim);
        let is_gzip = words.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !words.any(|word| word.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32)))
    })
}

fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content.as_bytes()).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

/// The way from a page to the files: pages have addresses of different depths.
fn assets_from(below: &str) -> String {
    match below.strip_prefix('/') {
        None => format!("console/{ASSETS}"),
        Some(page) => "../".repeat(page.matches('/').count()) + ASSETS,
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn text(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut response = with_status(status, Body::from(words.as_bytes().to_vec()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    protect(headers);
    response
}

fn with_status(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// What a browser loads, all pages together.
    const MOST_BYTES: usize = 64_000;
    /// The same before compression.
    const MOST_WRITTEN: usize = 170_000;

    #[test]
    fn what_a_browser_loads_is_small() {
        let bytes = INDEX.len() + COMPRESSED.iter().map(Vec::len).sum::<usize>();
        assert!(bytes < MOST_BYTES, "a browser loads {bytes} bytes");
        let written = INDEX.len() + FILES.iter().map(|(_, content)| content.len()).sum::<usize>();
        assert!(written < MOST_WRITTEN, "the files have {written} bytes");
    }

    #[test]
    fn only_clients_that_read_gzip_get_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0, br", false),
            ("gzip;q=0.0", false),
            ("x-gzip", false),
            ("identity", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        let on_disk = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let served = FILES.iter().map(|(name, _)| (*name).to_owned()).chain(["index.html".to_owned()]);
        assert_eq!(on_disk.collect::<BTreeSet<_>>(), served.collect::<BTreeSet<_>>());
    }

    /// The policy would stop it, and the page would not work.
    #[test]
    fn pages_have_no_script_or_style_inline() {
        for tag in INDEX.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').unwrap();
            let name = tag.split_whitespace().next().unwrap();
            assert_ne!(name, "style", "{tag}");
            assert!(name != "script" || (tag.contains("src=") && text.trim().is_empty()), "inline script: {tag}");
            for attribute in tag.split_whitespace().skip(1) {
                assert!(!attribute.starts_with("on") && !attribute.starts_with("style="), "{attribute} in {tag}");
                assert!(!attribute.contains("javascript:"), "{attribute} in {tag}");
            }
        }
    }

    #[test]
    fn what_a_file_names_exists() {
        let exists = |name: &str| FILES.iter().any(|(known, _)| *known == name);
        for named in INDEX.split("\"@assets/").skip(1) {
            let (named, _) = named.split_once('"').unwrap();
            assert!(exists(named), "index.html names {named}");
        }
        assert_eq!(INDEX.matches("@assets/").count(), INDEX.matches("\"@assets/").count());
        for (name, content) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            for line in content.lines().filter(|line| line.starts_with("import ") || line.starts_with("} from ")) {
                let from = line.rsplit_once(' ').map(|(_, from)| from.trim_matches(['"', '\'', ';'])).unwrap();
                if line.contains(" from ") || line.ends_with("';") {
                    assert!(from.strip_prefix("./").is_some_and(exists), "{name}: {line}");
                }
            }
        }
    }

    /// What others wrote is shown as text. Only `textContent` and text nodes do that; these do not.
    #[test]
    fn no_script_makes_html_of_text() {
        for (name, content) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            for word in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"]
            {
                assert!(!content.contains(word), "{name} has {word}");
            }
        }
    }

    #[test]
    fn pages_of_every_depth_find_their_files() {
        for (below, expected) in [
            ("", "console/assets/"),
            ("/", "assets/"),
            ("/tasks", "assets/"),
            ("/tasks/", "../assets/"),
            ("/tasks/01-ab", "../assets/"),
            ("/a/b/c", "../../assets/"),
        ] {
            assert_eq!(assets_from(below), expected, "{below}");
        }
    }
}

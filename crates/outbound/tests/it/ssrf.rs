//! Spellings of targets that nobody may reach through us: each is refused when it is configured, when it is dialled, and
//! when a redirect leads to it. The listener that they mean counts its connections.

use std::net::Ipv4Addr;
use std::sync::Arc;

use proptest::prelude::*;
use sabir_outbound::client::DialError;
use sabir_outbound::guard::{EgressPolicy, Guard, Host};
use tokio::net::TcpListener;

use crate::support::{Names, Receiver, client, loopback_allowed, ok, post, post_following};

/// URLs by what is wrong with them. `PORT` is the port of the listener on 127.0.0.1 and on ::1.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "loopback in its plain spelling",
        &[
            "http://127.0.0.1:PORT/",
            "https://127.0.0.1:PORT/",
            "HTTP://127.0.0.1:PORT/",
            "http://127.0.0.1:PORT",
            "http://127.0.0.1:PORT?x",
            "http://127.0.0.1:PORT#x",
            "http://127.0.0.1.:PORT/",
            "http://127.1.2.3:PORT/",
            "http://127.255.255.255:PORT/",
            "http://0.0.0.0:PORT/",
            "http://0.1.2.3:PORT/",
            "http://[::1]:PORT/",
            "http://[::]:PORT/",
            "http://[0:0:0:0:0:0:0:1]:PORT/",
            "http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/",
        ],
    ),
    (
        "numbers",
        &[
            "http://2130706433:PORT/",
            "http://2130706433.:PORT/",
            "http://0x7f000001:PORT/",
            "http://0X7F000001:PORT/",
            "http://0x7f.0x0.0x0.0x1:PORT/",
            "http://0x7f.1:PORT/",
            "http://017700000001:PORT/",
            "http://0177.0.0.1:PORT/",
            "http://0177.0.0.01:PORT/",
            "http://00000177.0.0.1:PORT/",
            "http://127.1:PORT/",
            "http://127.0.1:PORT/",
            "http://127.0.0.0x1:PORT/",
            "http://127.0x000001:PORT/",
            "http://127.00.0.1:PORT/",
            "http://127.000.000.001:PORT/",
            "http://4294967297:PORT/",
            "http://383.0.0.1:PORT/",
            "http://127.0.0.257:PORT/",
            "http://0:PORT/",
            "http://0x0:PORT/",
            "http://00:PORT/",
            "http://3232235777/",
            "http://2852039166/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://0251.0376.0251.0376/",
        ],
    ),
    (
        "IPv4 inside IPv6",
        &[
            "http://[::ffff:127.0.0.1]:PORT/",
            "http://[::ffff:7f00:1]:PORT/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
            "http://[::FFFF:127.0.0.1]:PORT/",
            "http://[::127.0.0.1]:PORT/",
            "http://[::7f00:1]:PORT/",
            "http://[::ffff:0:127.0.0.1]:PORT/",
            "http://[::ffff:0.0.0.0]:PORT/",
            "http://[64:ff9b::127.0.0.1]:PORT/",
            "http://[64:ff9b::7f00:1]:PORT/",
            "http://[64:ff9b:1::127.0.0.1]:PORT/",
            "http://[2002:7f00:1::]:PORT/",
            "http://[2001:0:7f00:1::]:PORT/",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::169.254.169.254]/",
            "http://[2002:a9fe:a9fe::]/",
        ],
    ),
    (
        "zones and other brackets",
        &[
            "http://[::1%lo]:PORT/",
            "http://[::1%25lo]:PORT/",
            "http://[fe80::1%25eth0]:PORT/",
            "http://[fe80::1]:PORT/",
            "http://[127.0.0.1]:PORT/",
            "http://[::1]x:PORT/",
            "http://[::1:PORT/",
            "http://::1:PORT/",
            "http://[v1.127.0.0.1]:PORT/",
        ],
    ),
    (
        "user info and slashes",
        &[
            "http://public.example@127.0.0.1:PORT/",
            "http://public.example:80@127.0.0.1:PORT/",
            "http://a:b@127.0.0.1:PORT/",
            "http://@127.0.0.1:PORT/",
            "http://127.0.0.1:PORT@public.example/",
            "http://127.0.0.1:PORT\\@public.example/",
            "http://public.example\\@127.0.0.1:PORT/",
            "http://127.0.0.1:PORT\\.public.example/",
            "http:\\\\127.0.0.1:PORT/",
            "http:/\\127.0.0.1:PORT/",
            "http:///127.0.0.1:PORT/",
            "http:127.0.0.1:PORT/",
            "http:/127.0.0.1:PORT/",
            "http://public.example%40127.0.0.1:PORT/",
            "http://127.0.0.1%00.public.example:PORT/",
            "http://127.0.0.1%2f.public.example:PORT/",
            "http://127.0.0.1:PORT:80/",
            "http://127.0.0.1 .public.example:PORT/",
        ],
    ),
    (
        "letters that are not ASCII, and escapes",
        &[
            "http://１２７.０.０.１:PORT/",
            "http://127。0。0。1:PORT/",
            "http://127．0．0．1:PORT/",
            "http://127｡0｡0｡1:PORT/",
            "http://①②⑦.⓪.⓪.①:PORT/",
            "http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:PORT/",
            "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
            "http://ｌｏｃａｌｈｏｓｔ:PORT/",
            "http://local\u{ad}host:PORT/",
            "http://loc\u{200b}alhost:PORT/",
            "http://%31%32%37.0.0.1:PORT/",
            "http://127%2e0%2e0%2e1:PORT/",
            "http://%6cocalhost:PORT/",
            "http://loca\tlhost:PORT/",
            "http://127.0.0.1\t:PORT/",
            "\thttp://127.0.0.1:PORT/",
            " http://127.0.0.1:PORT/",
            "http://127.0.0.1:PORT/\r\nHost: public.example",
        ],
    ),
    (
        "networks that are not public",
        &[
            "http://10.0.0.1/",
            "http://10.255.255.255/",
            "http://172.16.0.1/",
            "http://172.31.255.254/",
            "http://192.168.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://169.254.170.2/v2/credentials",
            "http://100.64.0.1/",
            "http://100.100.100.200/latest/meta-data/",
            "http://168.63.129.16/machine",
            "http://192.0.0.192/opc/v2/",
            "http://192.0.2.1/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
            "http://198.18.0.1/",
            "http://192.88.99.1/",
            "http://224.0.0.1/",
            "http://239.255.255.250:1900/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/latest/meta-data/",
            "http://[fd20:ce::254]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[2001:10::1]/",
            "http://[2001:20::1]/",
            "http://[100::1]/",
            "http://[5f00::1]/",
        ],
    ),
    (
        "names",
        &[
            "http://localhost:PORT/",
            "http://LOCALHOST:PORT/",
            "http://localhost.:PORT/",
            "http://loopback.example:PORT/",
            "http://loopback6.example:PORT/",
            "http://mapped.example:PORT/",
            "http://nat64.example:PORT/",
            "http://zero.example:PORT/",
            "http://private.example/",
            "http://metadata.example/",
            "http://both.example:PORT/",
            "http://both-reversed.example:PORT/",
            "http://both6.example:PORT/",
            "http://empty.example:PORT/",
            "http://unknown.example:PORT/",
            "https://loopback.example:PORT/",
        ],
    ),
    (
        "schemes and ports",
        &[
            "file:///etc/passwd",
            "file://127.0.0.1/etc/passwd",
            "ftp://127.0.0.1:PORT/",
            "gopher://127.0.0.1:PORT/_x",
            "dict://127.0.0.1:PORT/",
            "ws://127.0.0.1:PORT/",
            "unix:///run/docker.sock",
            "http+unix://%2Frun%2Fdocker.sock/",
            "jar:http://127.0.0.1:PORT/!/",
            "data:text/plain,x",
            "//127.0.0.1:PORT/",
            "127.0.0.1:PORT/",
            "http://public.example:0/",
            "http://public.example:65536/",
            "http://127.0.0.1:+PORT/",
            "http://",
            "",
        ],
    ),
];

fn names() -> Arc<Names> {
    let names = Names::new();
    for (name, addresses) in [
        ("public.example", "93.184.215.14"),
        ("localhost", "127.0.0.1 ::1"),
        ("loopback.example", "127.0.0.1"),
        ("loopback6.example", "::1"),
        ("mapped.example", "::ffff:127.0.0.1"),
        ("nat64.example", "64:ff9b::7f00:1"),
        ("zero.example", "0.0.0.0"),
        ("private.example", "192.168.7.7"),
        ("metadata.example", "169.254.169.254"),
        ("both.example", "93.184.215.14 127.0.0.1"),
        ("both-reversed.example", "127.0.0.1 93.184.215.14"),
        ("both6.example", "93.184.215.14 ::1"),
        ("empty.example", ""),
    ] {
        names.set(name, &[addresses]);
    }
    names
}

/// The listener on 127.0.0.1, and one on the same port of ::1 where there is IPv6.
async fn victims() -> Vec<Receiver> {
    if TcpListener::bind("[::1]:0").await.is_err() {
        return vec![Receiver::answering("127.0.0.1:0", ok("inside")).await];
    }
    let (first, second) = Receiver::pair(("127.0.0.1", "inside"), ("::1", "inside")).await;
    vec![first, second]
}

#[tokio::test]
async fn no_spelling_of_a_forbidden_target_gets_a_connection() {
    let victims = victims().await;
    let names = names();
    let client = client(EgressPolicy::default(), names);
    let mut count = 0;
    for (kind, urls) in FORBIDDEN {
        for url in urls.iter().map(|url| url.replace("PORT", &victims[0].port().to_string())) {
            let checked = client.guard().check_url(&url).await;
            assert!(checked.is_err(), "{kind}: {url:?} passed the check");
            let error = post(&client, &url).await.expect_err(&url);
            assert!(matches!(error, DialError::Refused(_) | DialError::Dns { .. }), "{kind}: {url:?}: {error:?}");
            assert_eq!(error.to_string(), checked.unwrap_err().to_string(), "{url:?}");
            count += 1;
        }
    }
    assert!(count >= 80, "only {count} spellings");
    assert!(victims.iter().all(|victim| victim.accepts() == 0));
}

#[tokio::test]
async fn no_redirect_leads_to_a_forbidden_target() {
    let victims = victims().await;
    for (kind, urls) in FORBIDDEN {
        for url in urls.iter().map(|url| url.replace("PORT", &victims[0].port().to_string())) {
            // These are relative to the redirecting URL, or no header at all.
            let is_relative = !url.split('/').next().unwrap().contains(':') && !url.starts_with("//");
            if is_relative || url.contains(['\r', '\t']) {
                continue;
            }
            let hop = format!("HTTP/1.1 307 Temporary Redirect\r\ncontent-length: 0\r\nlocation: {url}\r\n\r\n");
            let last = Receiver::answering("127.0.0.1:0", hop).await;
            let chain = format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{}/\r\n\r\n", last.port());
            let first = Receiver::answering("127.0.0.1:0", chain).await;
            let mut policy = EgressPolicy::default();
            for hop in [&first, &last] {
                policy.trust(Host::Address(hop.address.ip()), hop.port());
            }
            let client = client(policy, names());
            let url = format!("http://127.0.0.1:{}/", first.port());
            let error = post_following(&client, &url, Default::default()).await.expect_err(kind);
            assert!(matches!(error, DialError::Refused(_) | DialError::Dns { .. }), "{kind}: {url:?}: {error:?}");
            assert_eq!((first.accepts(), last.accepts()), (1, 1));
        }
    }
    assert!(victims.iter().all(|victim| victim.accepts() == 0));
}

/// The same targets are reached when the operator allows them: the tables above do not pass for another reason.
#[tokio::test]
async fn what_the_operator_allows_gets_a_connection() {
    let victim = Receiver::answering("127.0.0.1:0", ok("inside")).await;
    let port = victim.port();
    let by_name = {
        let mut policy = EgressPolicy::default();
        policy.allow_host("loopback.example").unwrap();
        policy
    };
    let by_trust = {
        let mut policy = EgressPolicy::default();
        policy.trust(Host::parse("loopback.example").unwrap(), port);
        policy
    };
    let mut expected = 0;
    for (policy, host) in [
        (loopback_allowed(), "127.0.0.1"),
        (loopback_allowed(), "127.0.0.1."),
        (loopback_allowed(), "[::ffff:127.0.0.1]"),
        (loopback_allowed(), "loopback.example"),
        (loopback_allowed(), "LOOPBACK.example."),
        (loopback_allowed(), "mapped.example"),
        (by_name, "loopback.example"),
        (by_trust, "loopback.example"),
    ] {
        let client = client(policy, names());
        let url = format!("http://{host}:{port}/");
        client.guard().check_url(&url).await.expect(host);
        let response = post(&client, &url).await.expect(host);
        expected += 1;
        assert_eq!((response.body.as_ref(), victim.accepts()), (b"inside".as_slice(), expected), "{host}");
    }
}

#[tokio::test]
async fn an_allowed_name_is_accepted_without_a_lookup() {
    let names = names();
    let mut policy = EgressPolicy::default();
    policy.allow_host("hook-a").unwrap();
    let guard = Guard::new(policy, names.clone());
    guard.check_url("http://hook-a/x").await.unwrap();
    assert_eq!(names.lookups(), 0);
    guard.check_url("http://hook-b/x").await.unwrap_err();
    assert_eq!(names.lookups(), 1);
}

#[tokio::test]
async fn a_refusal_does_not_say_what_is_inside() {
    let guard = Guard::new(EgressPolicy::default(), names());
    let mut sentences = vec![];
    for host in ["private.example", "metadata.example", "both.example", "unknown.example", "empty.example"] {
        sentences.push(guard.check_url(&format!("http://{host}/")).await.unwrap_err().to_string());
    }
    sentences.dedup();
    assert_eq!(sentences, ["the host name does not resolve to a public address"]);
}

#[tokio::test]
async fn only_a_name_can_be_worth_another_try() {
    for (url, expected) in [
        ("http://private.example/", false),
        ("http://unknown.example/", false),
        ("http://10.0.0.1/", true),
        ("http://127.1/", true),
        ("file:///x", true),
        ("http://u@public.example/", true),
        ("http://public.example:0/", true),
    ] {
        let client = client(EgressPolicy::default(), names());
        let error = post(&client, url).await.expect_err(url);
        assert_eq!(error.is_permanent(), expected, "{url}: {error:?}");
    }
}

/// An IPv4 address that is not public.
fn inside() -> impl Strategy<Value = Ipv4Addr> {
    let range = |first: [u8; 4], prefix: u32| {
        any::<u32>().prop_map(move |bits| {
            let mask = u32::MAX.checked_shr(prefix).unwrap_or(0);
            Ipv4Addr::from_bits(u32::from_be_bytes(first) | (bits & mask))
        })
    };
    prop_oneof![
        range([0, 0, 0, 0], 8),
        range([10, 0, 0, 0], 8),
        range([100, 64, 0, 0], 10),
        range([127, 0, 0, 0], 8),
        range([169, 254, 0, 0], 16),
        range([172, 16, 0, 0], 12),
        range([192, 168, 0, 0], 16),
        range([198, 18, 0, 0], 15),
        range([224, 0, 0, 0], 3),
    ]
}

/// One of the ways in which resolvers have read a number.
fn number(value: u32, style: u8) -> String {
    match style % 5 {
        0 => value.to_string(),
        1 => format!("0{value:o}"),
        2 => format!("0x{value:x}"),
        3 => format!("0X{value:08X}"),
        _ => format!("{value:03}"),
    }
}

fn spell(address: Ipv4Addr, parts: usize, styles: [u8; 4]) -> String {
    let octets = address.octets();
    let rest = octets[parts - 1..].iter().fold(0, |value: u32, octet| value << 8 | u32::from(*octet));
    let mut numbers: Vec<String> =
        octets[..parts - 1].iter().zip(styles).map(|(octet, style)| number(u32::from(*octet), style)).collect();
    numbers.push(number(rest, styles[parts - 1]));
    numbers.join(".")
}

proptest! {
    #[test]
    fn no_numeric_spelling_of_a_forbidden_address_passes(
        address in inside(), parts in 1..=4_usize, styles in any::<[u8; 4]>(), dot in prop_oneof![Just(""), Just(".")],
    ) {
        let host = spell(address, parts, styles);
        let bits = address.to_bits();
        let (high, low) = (bits >> 16, bits & 0xffff);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let names = Names::new();
        let guard = Guard::new(EgressPolicy::default(), names.clone());
        for host in [
            format!("{host}{dot}"),
            format!("[::ffff:{address}]"),
            format!("[::ffff:{high:x}:{low:x}]"),
            format!("[::{address}]"),
            format!("[64:ff9b::{address}]"),
            format!("[2002:{high:x}:{low:x}::1]"),
        ] {
            let checked = runtime.block_on(guard.check_url(&format!("http://{host}/")));
            prop_assert!(checked.is_err(), "{} passed", host);
        }
        // None of them was taken for a name.
        prop_assert_eq!(names.lookups(), 0);
    }

    #[test]
    fn any_text_is_checked_without_a_panic(url in any::<String>(), host in "\\PC{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let guard = Guard::new(EgressPolicy::default(), names());
        for url in [url, format!("http://{host}/"), format!("https://{host}")] {
            let _ = runtime.block_on(guard.check_url(&url));
        }
    }
}

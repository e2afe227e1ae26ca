//! What is known of a client: the version that it speaks, and what it can do.
//!
//! | era    | versions                | said                                                        |
//! |--------|-------------------------|-------------------------------------------------------------|
//! | modern | 2026-07-28              | in each request, as `_meta`                                  |
//! | legacy | 2025-03-26 to 2025-11-25 | in `initialize`; the session id repeats it                   |
//! | legacy | 2024-11-05              | the same, on standard input and output alone: it has another HTTP |
//!
//! A session id is not a key to anything on the server: it *is* what the client said in `initialize`, so any server behind a
//! balancer answers it, also after a restart. It gives no rights; those are the caller's.

use sabir_model::Json;
use serde::Deserialize;

use super::message::Refusal;

/// How messages come to the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpTransport {
    /// Streamable HTTP.
    #[default]
    Http,
    /// Standard input and output, which `sabir mcp` carries here.
    Stdio,
}

/// What versions of MCP are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum McpVersion {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl McpVersion {
    /// The newest first, as the lists of supported versions have them.
    const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// What `initialize` is answered where it asks for a version that is not served.
    const NEWEST_LEGACY: Self = Self::V2025_11_25;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// A version that is served on this transport.
    pub(crate) fn parse(name: &str, transport: McpTransport) -> Option<Self> {
        Self::served(transport).find(|version| version.name() == name)
    }

    pub(crate) fn names(transport: McpTransport) -> Vec<&'static str> {
        Self::served(transport).map(Self::name).collect()
    }

    /// The oldest version is older than streamable HTTP.
    fn served(transport: McpTransport) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |version| *version > Self::V2024_11_05 || transport == McpTransport::Stdio)
    }

    fn is_modern(self) -> bool {
        self == Self::V2026_07_28
    }
}

/// What is known of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) version: McpVersion,
    /// It can ask its user with a form.
    pub(crate) asks_users: bool,
    /// It knows the tasks extension.
    pub(crate) knows_tasks: bool,
}

/// Headers that repeat what a body says.
#[derive(Debug, Clone, Copy, Default)]
pub struct McpHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub protocol_version: Option<&'a str>,
    /// `Mcp-Method`.
    pub method: Option<&'a str>,
    /// `Mcp-Name`.
    pub name: Option<&'a str>,
    /// `Mcp-Session-Id`.
    pub session: Option<&'a str>,
    /// `Sabir-Mcp-Transport`, which `sabir mcp` sends.
    pub transport: McpTransport,
}

/// `_meta` of a modern request.
#[derive(Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Capabilities>,
}

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    version: String,
    capabilities: Capabilities,
}

#[derive(Deserialize)]
struct Capabilities {
    elicitation: Option<Elicitation>,
    extensions: Option<Extensions>,
}

#[derive(Deserialize)]
struct Elicitation {
    form: Option<Json>,
    url: Option<Json>,
}

#[derive(Deserialize)]
struct Extensions {
    #[serde(rename = "io.modelcontextprotocol/tasks")]
    tasks: Option<Json>,
}

impl Capabilities {
    /// Without a mode, it is forms.
    fn asks_users(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    fn knows_tasks(&self) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.tasks.is_some())
    }
}

impl Client {
    /// What a request of the modern era says; `None`: it is not of that era.
    ///
    /// # Errors
    /// It lacks what such a request must have, or its version is not served.
    pub(crate) fn of_request(
        params: &Json,
        header: Option<&str>,
        transport: McpTransport,
    ) -> Result<Option<Self>, Refusal> {
        let invalid = |why: &str| Refusal::invalid_params(format!("Invalid params: {why}")).with_status(400);
        let parse = |name: &str| McpVersion::parse(name, transport);
        let claims_modern = header.and_then(parse).is_some_and(McpVersion::is_modern);
        let meta = serde_json::from_str::<Params>(params.as_str());
        let meta = match meta {
            Ok(params) => params.meta,
            Err(_) if claims_modern => return Err(invalid("_meta is malformed")),
            // A legacy client may have anything there.
            Err(_) => return Ok(None),
        };
        let Some(named) = meta.as_ref().and_then(|meta| meta.version.as_deref()) else {
            let missing = "_meta has no io.modelcontextprotocol/protocolVersion";
            return if claims_modern { Err(invalid(missing)) } else { Ok(None) };
        };
        let Some(version) = parse(named).filter(|version| version.is_modern()) else {
            return Err(unsupported(named, transport));
        };
        let Some(capabilities) = meta.as_ref().and_then(|meta| meta.capabilities.as_ref()) else {
            return Err(invalid("_meta has no io.modelcontextprotocol/clientCapabilities"));
        };
        let (asks_users, knows_tasks) = (capabilities.asks_users(), capabilities.knows_tasks());
        Ok(Some(Self { version, asks_users, knows_tasks }))
    }

    /// What `initialize` says.
    ///
    /// # Errors
    /// It lacks what it must have.
    pub(crate) fn of_initialize(params: &Json, transport: McpTransport) -> Result<Self, Refusal> {
        let params: InitializeParams = serde_json::from_str(params.as_str())
            .map_err(|error| Refusal::invalid_params(format!("Invalid params: {error}")))?;
        let asked = McpVersion::parse(&params.version, transport).filter(|version| !version.is_modern());
        let version = asked.unwrap_or(McpVersion::NEWEST_LEGACY);
        // Forms came with 2025-06-18.
        let asks_users = version >= McpVersion::V2025_06_18 && params.capabilities.asks_users();
        Ok(Self { version, asks_users, knows_tasks: false })
    }

    /// A legacy client of which nothing is known.
    pub(crate) fn unknown(version: McpVersion) -> Self {
        Self { version, asks_users: false, knows_tasks: false }
    }

    pub(crate) fn is_modern(self) -> bool {
        self.version.is_modern()
    }

    /// Results have their data beside their content. Clients of the oldest version get it as a last text.
    pub(crate) fn knows_structured_content(self) -> bool {
        self.version > McpVersion::V2024_11_05
    }

    /// Tools have annotations, and progress has words.
    pub(crate) fn knows_annotations(self) -> bool {
        self.version > McpVersion::V2024_11_05
    }

    /// What has a name for programs may have one for people.
    pub(crate) fn knows_titles(self) -> bool {
        self.version >= McpVersion::V2025_06_18
    }

    /// The session id that repeats this. `unique` tells sessions apart in the logs of clients.
    pub(crate) fn session_id(self, unique: u64) -> String {
        let asks = if self.asks_users { "forms" } else { "plain" };
        format!("{}.{asks}.{unique:016x}", self.version.name())
    }

    /// What a session id says; `None`: it is none of ours.
    pub(crate) fn of_session(id: &str, transport: McpTransport) -> Option<Self> {
        let mut words = id.split('.');
        let version = McpVersion::parse(words.next()?, transport).filter(|version| !version.is_modern())?;
        let asks_users = match words.next()? {
            "forms" => true,
            "plain" => false,
            _ => return None,
        };
        let unique = words.next()?;
        let is_ours = unique.len() == 16 && unique.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_ours && words.next().is_none()).then_some(Self { version, asks_users, knows_tasks: false })
    }
}

pub(crate) fn unsupported(requested: &str, transport: McpTransport) -> Refusal {
    #[derive(serde::Serialize)]
    struct Data<'a> {
        supported: Vec<&'static str>,
        requested: &'a str,
    }
    let requested: String = requested.chars().take(200).collect();
    let data = Data { supported: McpVersion::names(transport), requested: &requested };
    Refusal::new(Refusal::UNSUPPORTED_VERSION, "Unsupported protocol version").with_status(400).with_data(&data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn a_session_id_repeats_what_the_client_said() {
        const HTTP: McpTransport = McpTransport::Http;
        const STDIO: McpTransport = McpTransport::Stdio;
        for (capabilities, version, transport, expected) in [
            (r#"{"elicitation":{}}"#, "2025-11-25", HTTP, ("2025-11-25", true)),
            (r#"{"elicitation":{}}"#, "2025-11-25", STDIO, ("2025-11-25", true)),
            (r#"{"elicitation":{"url":{}}}"#, "2025-11-25", HTTP, ("2025-11-25", false)),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, "2025-06-18", HTTP, ("2025-06-18", true)),
            (r#"{"elicitation":{}}"#, "2025-03-26", HTTP, ("2025-03-26", false)),
            (r#"{"elicitation":{}}"#, "2024-11-05", STDIO, ("2024-11-05", false)),
            (r#"{"elicitation":{}}"#, "2024-11-05", HTTP, ("2025-11-25", true)),
            ("{}", "2099-01-01", HTTP, ("2025-11-25", false)),
            ("{}", "2026-07-28", STDIO, ("2025-11-25", false)),
        ] {
            let params = json(&format!(r#"{{"protocolVersion":"{version}","capabilities":{capabilities}}}"#));
            let client = Client::of_initialize(&params, transport).unwrap();
            assert_eq!((client.version.name(), client.asks_users), expected, "{capabilities} {version} {transport:?}");
            assert_eq!(Client::of_session(&client.session_id(7), transport), Some(client));
        }
        let oldest = Client::unknown(McpVersion::V2024_11_05).session_id(7);
        assert_eq!((Client::of_session(&oldest, HTTP), Client::of_session(&oldest, STDIO).is_some()), (None, true));
        for id in [
            "",
            "x",
            "2025-11-25.forms",
            "2025-11-25.forms.1",
            "2026-07-28.forms.0000000000000007",
            "2025-11-25.forms.0000000000000007.x",
            "2025-11-25.other.0000000000000007",
        ] {
            assert_eq!(Client::of_session(id, HTTP), None, "{id}");
        }
    }

    #[test]
    fn a_modern_request_says_all_by_itself() {
        let meta = |meta: &str| json(&format!(r#"{{"_meta":{meta}}}"#));
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let capable = |capabilities: &str| {
            meta(&format!(r#"{{{version},"io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#))
        };
        let of = |params: &Json, header| {
            Client::of_request(params, header, McpTransport::Http).map_err(|refusal| refusal.code)
        };
        let modern =
            |asks_users, knows_tasks| Ok(Some(Client { version: McpVersion::V2026_07_28, asks_users, knows_tasks }));
        assert_eq!(of(&capable("{}"), None), modern(false, false));
        assert_eq!(
            of(&capable(r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#), None),
            modern(true, true)
        );
        assert_eq!(of(&meta(&format!("{{{version}}}")), None), Err(Refusal::INVALID_PARAMS));
        assert_eq!(of(&json("{}"), Some("2026-07-28")), Err(Refusal::INVALID_PARAMS));
        assert_eq!(of(&json("{}"), Some("2025-11-25")), Ok(None));
        assert_eq!(of(&json(r#"{"_meta":{"progressToken":1}}"#), None), Ok(None));
        assert_eq!(
            of(&meta(r#"{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}"#), None),
            Err(Refusal::UNSUPPORTED_VERSION)
        );
    }
}

//! The content of messages: ACP's blocks as A2A's parts, and back.
//!
//! | ACP | A2A |
//! |---|---|
//! | `text` | text |
//! | `image`, `audio` | the bytes of a file, with their media type |
//! | `resource` | the bytes of a file, with its name; its address is in the metadata of the part |
//! | `resource_link` | the address of a file |

use sabir_model::{Base64, Content, Json, Part};
use serde::{Deserialize, Serialize};

use super::json_rpc::RpcError;

/// The member of a part's metadata with the address of an embedded resource.
const URI: &str = "uri";

/// A block of a prompt, as it comes. What a kind needs is checked when it becomes a part.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentBlock {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    resource: Option<IncomingResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IncomingResource {
    uri: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
}

/// The parts of a prompt.
pub fn parts_of(prompt: Vec<ContentBlock>) -> Result<Vec<Part>, RpcError> {
    if prompt.is_empty() {
        return Err(RpcError::invalid_params("prompt: must not be empty"));
    }
    prompt.into_iter().enumerate().map(|(place, block)| block.into_part(place)).collect()
}

impl ContentBlock {
    fn into_part(self, place: usize) -> Result<Part, RpcError> {
        let invalid = |field: &str, why: &str| RpcError::invalid_params(format!("prompt[{place}].{field}: {why}"));
        let needed = |value: Option<String>, field: &str| value.ok_or_else(|| invalid(field, "is missing"));
        let bytes = |text: String, field: &str| {
            Base64::parse(text).map(Content::Bytes).ok_or_else(|| invalid(field, "is not base64"))
        };
        match self.r#type.as_str() {
            "text" => Ok(Part::text(needed(self.text, "text")?)),
            "image" | "audio" => {
                let media_type = Some(needed(self.mime_type, "mimeType")?);
                let filename = self.uri.as_deref().and_then(file_name);
                let content = bytes(needed(self.data, "data")?, "data")?;
                Ok(Part { media_type, filename, ..content.into() })
            }
            "resource_link" => {
                let filename = Some(needed(self.name, "name")?);
                Ok(Part { filename, media_type: self.mime_type, ..Part::url(needed(self.uri, "uri")?) })
            }
            "resource" => {
                let resource = self.resource.ok_or_else(|| invalid("resource", "is missing"))?;
                let IncomingResource { uri, text, blob, mime_type } = resource;
                let content = match (text, blob) {
                    (Some(text), None) => Content::Bytes(Base64::encode(text.as_bytes())),
                    (None, Some(blob)) => bytes(blob, "resource.blob")?,
                    _ => return Err(invalid("resource", "has either text or blob")),
                };
                let metadata = Json::of(&uri).ok().map(|uri| Json::with_member(None, URI, &uri));
                Ok(Part { filename: file_name(&uri), media_type: mime_type, metadata, ..content.into() })
            }
            _ => Err(invalid("type", "must be text, image, audio, resource or resource_link")),
        }
    }
}

/// The last piece of an address.
fn file_name(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// A block for the editor.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
    },
    Audio {
        data: String,
        mime_type: String,
    },
    Resource {
        resource: Resource,
    },
    ResourceLink {
        uri: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into() }
    }

    /// The part as an editor shows it; JSON is shown as JSON.
    pub fn of(part: &Part) -> Self {
        let mime_type = part.media_type.clone();
        match &part.content {
            Content::Text(text) => Self::text(text.as_str()),
            Content::Data(data) => Self::text(format!("```json\n{}\n```", data.as_str())),
            Content::Url(uri) => {
                let name = part.filename.clone().or_else(|| file_name(uri)).unwrap_or_else(|| uri.clone());
                Block::ResourceLink { uri: uri.clone(), name, mime_type }
            }
            Content::Bytes(bytes) => {
                let is = |family: &str| mime_type.as_deref().is_some_and(|media_type| media_type.starts_with(family));
                let data = || bytes.as_str().to_owned();
                match &mime_type {
                    Some(mime_type) if is("image/") => Block::Image { data: data(), mime_type: mime_type.clone() },
                    Some(mime_type) if is("audio/") => Block::Audio { data: data(), mime_type: mime_type.clone() },
                    _ => Block::Resource { resource: resource(part, bytes) },
                }
            }
        }
    }
}

/// Text as text, if it is UTF-8; everything else as base64.
fn resource(part: &Part, bytes: &Base64) -> Resource {
    let known = part.metadata.as_ref().and_then(|metadata| metadata.text_of(URI));
    let name = part.filename.as_deref().unwrap_or("file");
    let uri = known.unwrap_or_else(|| format!("attachment:///{}", name.replace(['/', '\\', ' '], "_")));
    let text = String::from_utf8(bytes.decode()).ok().filter(|text| !text.contains('\0'));
    let blob = text.is_none().then(|| bytes.as_str().to_owned());
    Resource { uri, mime_type: part.media_type.clone(), text, blob }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(prompt: &str) -> Result<Vec<Part>, RpcError> {
        parts_of(serde_json::from_str(prompt).unwrap())
    }

    #[test]
    fn blocks_come_back_from_their_parts() {
        for block in [
            r#"{"type":"text","text":"hello"}"#,
            r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#,
            r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","uri":"file:///a/b.rs","name":"b.rs","mimeType":"text/rust"}"#,
            r#"{"type":"resource_link","uri":"https://x/y","name":"why"}"#,
            r#"{"type":"resource","resource":{"uri":"file:///a/b.rs","mimeType":"text/rust","text":"fn b() {}"}}"#,
            r#"{"type":"resource","resource":{"uri":"file:///a/b.bin","blob":"AAD/"}}"#,
        ] {
            let parts = parts(&format!("[{block}]")).unwrap();
            assert_eq!(serde_json::to_string(&Block::of(&parts[0])).unwrap(), block);
        }
        let file = parts(r#"[{"type":"resource","resource":{"uri":"file:///a/b.rs","text":"x"}}]"#).unwrap().remove(0);
        assert_eq!(file.filename.as_deref(), Some("b.rs"));
        assert_eq!(file.content, Content::Bytes(Base64::encode(b"x")));
    }

    #[test]
    fn what_is_wrong_with_a_prompt_is_named() {
        for (prompt, expected) in [
            ("[]", "prompt: must not be empty"),
            (r#"[{"type":"text"}]"#, "prompt[0].text: is missing"),
            (
                r#"[{"type":"text","text":"a"},{"type":"video"}]"#,
                "prompt[1].type: must be text, image, audio, resource or resource_link",
            ),
            (r#"[{"type":"image","data":"AAAA"}]"#, "prompt[0].mimeType: is missing"),
            (r#"[{"type":"image","data":"?","mimeType":"image/png"}]"#, "prompt[0].data: is not base64"),
            (r#"[{"type":"resource_link","name":"a"}]"#, "prompt[0].uri: is missing"),
            (r#"[{"type":"resource"}]"#, "prompt[0].resource: is missing"),
            (r#"[{"type":"resource","resource":{"uri":"a"}}]"#, "prompt[0].resource: has either text or blob"),
        ] {
            assert_eq!(parts(prompt).unwrap_err().message, expected, "{prompt}");
        }
    }
}

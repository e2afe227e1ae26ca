//! How large a message to an agent may be. The bound for the whole request is the server's (`server.body_limit`).

use sabir_model::{Content, Error, Json, Message, Part};

use crate::engine::RegisteredAgent;

/// `further` are the parts of further answers in the same request.
pub(crate) fn check_message_size(
    addressed: &RegisteredAgent,
    message: &Message,
    further: &[Vec<Part>],
) -> Result<(), Error> {
    let limits = &addressed.hosted.limits;
    let agent = &addressed.hosted.id;
    let parts = || std::iter::once(&message.parts).chain(further).flatten();
    if let Some(limit) = limits.message_parts {
        let count = parts().count();
        if count > limit {
            return Err(Error::invalid("message.parts", format!("are {count}; agent {agent} takes at most {limit}")));
        }
    }
    if let Some(limit) = limits.message_bytes {
        let bytes = json_bytes(&message.metadata) + parts().map(part_bytes).sum::<usize>();
        if bytes > limit {
            return Err(Error::invalid("message", format!("has {bytes} bytes; agent {agent} takes at most {limit}")));
        }
    }
    Ok(())
}

/// Files count with their own size, not with that of their Base64.
fn part_bytes(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Bytes(base64) => base64.as_str().trim_end_matches('=').len() * 3 / 4,
        Content::Data(data) => data.as_str().len(),
    };
    let names = [&part.filename, &part.media_type].into_iter().flatten().map(String::len).sum::<usize>();
    content + names + json_bytes(&part.metadata)
}

fn json_bytes(json: &Option<Json>) -> usize {
    json.as_ref().map_or(0, |json| json.as_str().len())
}

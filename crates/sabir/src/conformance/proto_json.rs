//! The messages of gRPC as ProtoJSON, and back. Rules look at JSON, whatever the binding.
//!
//! Messages are known by their descriptors alone, so nothing of a message is lost that a dialect of ours does not know.

use std::sync::LazyLock;

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use sabir_proto::prost_types::Any;
use sabir_wire::grpc::{MessagePrefix, PREFIX_LENGTH};
use serde_json::{Value, json};

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(sabir_proto::DESCRIPTORS).expect("they are generated"));

/// A method of gRPC and its messages.
#[derive(Debug, Clone)]
pub struct GrpcMethod(MethodDescriptor);

impl GrpcMethod {
    /// By its path: `/lf.a2a.v1.A2AService/GetTask`.
    pub fn at(path: &str) -> Option<Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        let service = POOL.get_service_by_name(service)?;
        service.methods().find(|method| method.name() == name).map(GrpcMethod)
    }

    /// The message of a body that begins with its prefix.
    pub fn read_request(&self, body: &[u8]) -> Option<Value> {
        read(self.0.input(), body.get(PREFIX_LENGTH..)?).ok()
    }

    /// The body with the message. `None`: protobuf cannot say this.
    pub fn write_request(&self, json: &Value) -> Option<Vec<u8>> {
        let message = DynamicMessage::deserialize(self.0.input(), json).ok()?.encode_to_vec();
        Some([&MessagePrefix::plain(message.len()).write()[..], &message].concat())
    }

    /// An error says why it is not the message that this method answers with.
    pub fn read_response(&self, message: &[u8]) -> Result<Value, String> {
        let output = self.0.output();
        let mut json = read(output.clone(), message)
            .map_err(|why| format!("its {} bytes are no {}: {why}", message.len(), output.full_name()))?;
        if output.full_name() == "lf.a2a.v1.ListTasksResponse" {
            write_list_defaults(&mut json);
        }
        Ok(json)
    }
}

/// A detail of an error, as HTTP+JSON shows it. Of one that nobody knows, its type is all there is.
pub fn read_detail(detail: &Any) -> Value {
    let known = detail.type_url.rsplit('/').next().and_then(|name| POOL.get_message_by_name(name));
    let read = known.and_then(|descriptor| read(descriptor, &detail.value).ok());
    let mut json = read.filter(Value::is_object).unwrap_or_else(|| json!({}));
    json["@type"] = json!(detail.type_url);
    json
}

fn read(descriptor: MessageDescriptor, message: &[u8]) -> Result<Value, String> {
    let message = DynamicMessage::decode(descriptor, message).map_err(|error| error.to_string())?;
    serde_json::to_value(&message).map_err(|error| error.to_string())
}

/// In JSON a list always has these members; protobuf leaves out what is empty or 0.
fn write_list_defaults(list: &mut Value) {
    for (name, default) in
        [("tasks", json!([])), ("nextPageToken", json!("")), ("pageSize", json!(0)), ("totalSize", json!(0))]
    {
        if list.get(name).is_none() {
            list[name] = default;
        }
    }
}

#[cfg(test)]
mod tests {
    use sabir_proto::rpc;

    use super::*;

    #[test]
    fn messages_become_json_and_back() {
        let send = GrpcMethod::at("/lf.a2a.v1.A2AService/SendMessage").unwrap();
        let request = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}});
        let body = send.write_request(&request).unwrap();
        assert_eq!(body[..PREFIX_LENGTH], MessagePrefix::plain(body.len() - PREFIX_LENGTH).write());
        assert_eq!(send.read_request(&body), Some(request));
        assert_eq!(send.write_request(&json!({"message": "hello"})), None);
        assert!(
            send.read_response(b"\xff").unwrap_err().starts_with("its 1 bytes are no lf.a2a.v1.SendMessageResponse")
        );
        let list = GrpcMethod::at("/lf.a2a.v1.A2AService/ListTasks").unwrap();
        let empty = json!({"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0});
        assert_eq!(list.read_response(b""), Ok(empty));
        for path in ["", "/tasks", "/lf.a2a.v1.A2AService/Unknown", "/other.Service/GetTask"] {
            assert!(GrpcMethod::at(path).is_none(), "{path}");
        }
    }

    #[test]
    fn details_are_shown_as_far_as_they_are_known() {
        let info = rpc::ErrorInfo { reason: "R".to_owned(), domain: "d".to_owned(), metadata: Default::default() };
        let known = "type.googleapis.com/google.rpc.ErrorInfo";
        for (type_url, value, expected) in [
            (known, info.encode_to_vec(), json!({"@type": known, "reason": "R", "domain": "d"})),
            (known, b"\xff".to_vec(), json!({"@type": known})),
            ("example.com/other.Detail", vec![], json!({"@type": "example.com/other.Detail"})),
        ] {
            assert_eq!(read_detail(&Any { type_url: type_url.to_owned(), value }), expected);
        }
    }
}

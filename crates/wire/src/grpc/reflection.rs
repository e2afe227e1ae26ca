//! The reflection service: which services there are, and the files that describe their messages. Tools that have no `.proto`
//! files ask it.

use std::collections::HashMap;
use std::sync::OnceLock;

use sabir_model::Error;
use sabir_proto::prost::Message;
use sabir_proto::prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use sabir_proto::reflection::server_reflection_request::MessageRequest;
use sabir_proto::reflection::server_reflection_response::MessageResponse;
use sabir_proto::reflection::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};

use super::prefix::framed;
use super::status::GrpcCode;
use crate::protobuf::read_message;

/// Answers one request of a reflection stream; the answer has its prefix.
pub fn reflect(message: &[u8]) -> Result<Vec<u8>, Error> {
    let request: ServerReflectionRequest = read_message(message)?;
    let files = files();
    let response = match &request.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let service = files.services.iter().map(|name| ServiceResponse { name: name.clone() }).collect();
            MessageResponse::ListServicesResponse(ListServiceResponse { service })
        }
        Some(MessageRequest::FileByFilename(name)) => files.answer(files.by_name.get(name.as_str()), name),
        Some(MessageRequest::FileContainingSymbol(symbol)) => {
            files.answer(files.by_symbol.get(symbol.trim_start_matches('.')), symbol)
        }
        // There are no extensions of messages here.
        Some(MessageRequest::AllExtensionNumbersOfType(name)) if files.by_symbol.contains_key(name.as_str()) => {
            let response = ExtensionNumberResponse { base_type_name: name.clone(), extension_number: Vec::new() };
            MessageResponse::AllExtensionNumbersResponse(response)
        }
        Some(MessageRequest::AllExtensionNumbersOfType(name)) => not_found(name),
        Some(MessageRequest::FileContainingExtension(request)) => not_found(&request.containing_type),
        None => MessageResponse::ErrorResponse(ErrorResponse {
            error_code: i32::from(GrpcCode::of_name("INVALID_ARGUMENT").0),
            error_message: "the request asks for nothing".to_owned(),
        }),
    };
    let valid_host = request.host.clone();
    let response =
        ServerReflectionResponse { valid_host, original_request: Some(request), message_response: Some(response) };
    Ok(framed(&response))
}

fn not_found(what: &str) -> MessageResponse {
    let error_message = format!("there is no {}", crate::excerpt(what));
    MessageResponse::ErrorResponse(ErrorResponse { error_code: i32::from(GrpcCode::NOT_FOUND.0), error_message })
}

struct Files {
    files: Vec<FileDescriptorProto>,
    services: Vec<String>,
    by_name: HashMap<String, usize>,
    /// Messages, enums, services and methods, by their full names.
    by_symbol: HashMap<String, usize>,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let set = FileDescriptorSet::decode(sabir_proto::DESCRIPTORS).expect("the generator made it");
        Files::new(set.file)
    })
}

impl Files {
    fn new(files: Vec<FileDescriptorProto>) -> Self {
        let mut index =
            Files { files: Vec::new(), services: Vec::new(), by_name: HashMap::new(), by_symbol: HashMap::new() };
        for (place, file) in files.iter().enumerate() {
            index.by_name.insert(file.name().to_owned(), place);
            let package = file.package();
            for service in &file.service {
                let name = format!("{package}.{}", service.name());
                for method in &service.method {
                    index.by_symbol.insert(format!("{name}.{}", method.name()), place);
                }
                index.by_symbol.insert(name.clone(), place);
                index.services.push(name);
            }
            for each in &file.enum_type {
                index.by_symbol.insert(format!("{package}.{}", each.name()), place);
            }
            for message in &file.message_type {
                index.add_message(package, message, place);
            }
        }
        index.services.sort();
        index.files = files;
        index
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto, place: usize) {
        let name = format!("{scope}.{}", message.name());
        for each in &message.enum_type {
            self.by_symbol.insert(format!("{name}.{}", each.name()), place);
        }
        for nested in &message.nested_type {
            self.add_message(&name, nested, place);
        }
        self.by_symbol.insert(name, place);
    }

    /// The file, and before it all that it imports, so that a client need not ask again.
    fn answer(&self, place: Option<&usize>, asked: &str) -> MessageResponse {
        let Some(place) = place else { return not_found(asked) };
        let mut needed = Vec::new();
        self.collect(*place, &mut needed);
        let file_descriptor_proto = needed.into_iter().map(|place| self.files[place].encode_to_vec().into()).collect();
        MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
    }

    fn collect(&self, place: usize, needed: &mut Vec<usize>) {
        if needed.contains(&place) {
            return;
        }
        // The file that was asked for comes first.
        needed.push(place);
        for import in &self.files[place].dependency {
            if let Some(imported) = self.by_name.get(import) {
                self.collect(*imported, needed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::prefix::PREFIX_LENGTH;
    use super::*;

    fn ask(request: MessageRequest) -> String {
        let request = ServerReflectionRequest { host: "h".to_owned(), message_request: Some(request) };
        let frame = reflect(&request.encode_to_vec()).unwrap();
        let response = ServerReflectionResponse::decode(&frame[PREFIX_LENGTH..]).unwrap();
        match response.message_response.unwrap() {
            MessageResponse::FileDescriptorResponse(files) => {
                let names = files
                    .file_descriptor_proto
                    .iter()
                    .map(|file| FileDescriptorProto::decode(file.clone()).unwrap().name().to_owned());
                names.collect::<Vec<_>>().join(" ")
            }
            MessageResponse::ListServicesResponse(list) => {
                list.service.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join(" ")
            }
            MessageResponse::AllExtensionNumbersResponse(_) => "no extensions".to_owned(),
            MessageResponse::ErrorResponse(error) => format!("{} {}", error.error_code, error.error_message),
        }
    }

    #[test]
    fn services_and_their_files_are_found() {
        let symbol = |name: &str| MessageRequest::FileContainingSymbol(name.to_owned());
        for (request, expected) in [
            (
                MessageRequest::ListServices(String::new()),
                "a2a.v1.A2AService grpc.health.v1.Health grpc.reflection.v1.ServerReflection \
                 grpc.reflection.v1alpha.ServerReflection lf.a2a.v1.A2AService",
            ),
            (
                symbol("lf.a2a.v1.A2AService"),
                "lf/a2a/v1/a2a.proto google/protobuf/empty.proto google/protobuf/struct.proto \
                 google/protobuf/timestamp.proto",
            ),
            (symbol("grpc.health.v1.HealthCheckResponse.ServingStatus"), "grpc/health/v1/health.proto"),
            (symbol("grpc.health.v1.Health.Check"), "grpc/health/v1/health.proto"),
            (
                MessageRequest::FileByFilename("google/rpc/error_details.proto".to_owned()),
                "google/rpc/error_details.proto",
            ),
            (MessageRequest::AllExtensionNumbersOfType("a2a.v1.Task".to_owned()), "no extensions"),
            (symbol("a2a.v1.Nothing"), "5 there is no a2a.v1.Nothing"),
        ] {
            assert_eq!(ask(request.clone()), expected, "{request:?}");
        }
        assert!(reflect(b"\xff\xff").is_err());
    }
}

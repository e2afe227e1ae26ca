//! `/openapi.json` against what is served: every path and verb of the document is called, and every reply must be as the
//! document says.

use std::collections::BTreeSet;

use sabir_testkit::sse;
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v1_message};

#[test]
fn the_document_is_public_and_tells_where_the_server_is() {
    let fixture = ServerFixture::configured("[auth]\ntokens = ['alice:token-of-alice']\n");
    let reply = fixture.get("/openapi.json");
    let document = reply.json();
    assert_eq!((reply.status, &document["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(document["servers"], json!([{"url": format!("http://{}", fixture.server.address)}]));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["security"], json!([{"bearer": []}]));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let etag = reply.header("etag").expect("an ETag").to_owned();
    let again = fixture.ask("GET", "/openapi.json", &[("If-None-Match", &etag)], &Value::Null);
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(etag.as_str())));
    assert_eq!(fixture.ask("POST", "/openapi.json", &[], &json!({})).status, 405);
    assert_eq!(fixture.get("/admin/v1/system").status, 401, "the document is public, and nothing else");
}

#[test]
fn every_path_is_served_and_every_reply_is_as_described() {
    let toml =
        "[audit]\nenabled = true\n[push]\nallow_cidrs = ['127.0.0.0/8']\n[[agent]]\nid = 'demo'\nkind = 'demo'\n";
    let fixture = ServerFixture::configured(toml);
    let document = fixture.get("/openapi.json").json();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            for version in [Some("1.0"), None] {
                let call = Call { fixture: &fixture, document: &document, path, verb, operation, version };
                match call.check() {
                    Ok(status) => drop(seen.insert(status)),
                    Err(why) => wrong.push(why),
                }
            }
        }
    }
    // Refusals are described too.
    for (path, operation) in [
        ("/tasks/none", &document["paths"]["/tasks/{id}"]["get"]),
        ("/v1/tasks/none", &document["paths"]["/v1/tasks/{id}"]["get"]),
        ("/v1/a2a/agents/demo/tasks/none", &document["paths"]["/v1/a2a/agents/{agent}/tasks/{task}"]["get"]),
        ("/v1/models/none", &document["paths"]["/v1/models/{agent}"]["get"]),
        ("/admin/v1/tasks/none", &document["paths"]["/admin/v1/tasks/{name}"]["get"]),
        ("/admin/v1/tasks?state=x", &document["paths"]["/admin/v1/tasks"]["get"]),
        ("/tasks?pageSize=x", &document["paths"]["/tasks"]["get"]),
    ] {
        for version in [Some("1.0"), None] {
            let call = Call { fixture: &fixture, document: &document, path, verb: "get", operation, version };
            match call.check_reply(path, &Value::Null) {
                Ok(status) => assert!((400..500).contains(&status), "{path} {status}"),
                Err(why) => wrong.push(why),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.contains(&200) && seen.contains(&202), "{seen:?}");
}

struct Call<'a> {
    fixture: &'a ServerFixture,
    document: &'a Value,
    path: &'a str,
    verb: &'a str,
    operation: &'a Value,
    version: Option<&'a str>,
}

impl Call<'_> {
    /// Makes the call with a task of its own. Returns the status, or what is not as described.
    fn check(&self) -> Result<u16, String> {
        let text = format!("ask {} {} {:?}", self.verb, self.path, self.version);
        let sent = self.fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &v1_message(&text)).json();
        let task = sent["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
        let hook = json!({"id": "c1", "url": "http://127.0.0.1:9/hook"});
        let configs = format!("/tasks/{task}/pushNotificationConfigs");
        assert_eq!(self.fixture.ask("POST", &configs, &[("A2A-Version", "1.0")], &hook).status, 200);
        let mut path = self.path.to_owned();
        if path.starts_with("/admin/v1/deliveries/{id}") {
            // The answer to the question is to be delivered, and there is no receiver.
            let mut answer = v1_message(&format!("{text} answer"));
            answer["message"]["taskId"] = json!(task);
            assert_eq!(self.fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &answer).status, 200);
            let id = self.fixture.server.until("a delivery is pending", |_| {
                let page = self.fixture.get("/admin/v1/deliveries").json();
                page["deliveries"][0]["id"].as_str().map(str::to_owned)
            });
            path = path.replace("{id}", &id);
        }
        for (name, value) in
            [("id", task.as_str()), ("task", &task), ("name", &task), ("configId", "c1"), ("agent", "demo")]
        {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let query = match self.path {
            "/admin/v1/tasks/cancel" => "?id=nothing",
            "/admin/v1/tasks/assign" => "?from=token:nobody&to=token:somebody",
            "/admin/v1/tasks" => "?state=open&state=completed&limit=2",
            "/admin/v1/audit" => "?limit=5",
            _ => "",
        };
        let body = self.body(&text);
        self.check_body(&body)?;
        self.check_reply(&format!("{path}{query}"), &body)
    }

    /// What is sent, where something must be.
    fn body(&self, text: &str) -> Value {
        match (self.verb, self.path) {
            ("post", "/message:send" | "/message:stream") => v1_message(&format!("file {text}")),
            ("post", "/v1/message:send" | "/v1/message:stream") => {
                json!({"message": {"messageId": format!("m {text}"), "role": "ROLE_USER", "content": [{"text": "data"}]}})
            }
            ("post", "/tasks/{id}/pushNotificationConfigs") => json!({"id": "c2", "url": "http://127.0.0.1:9/hook"}),
            ("post", "/v1/tasks/{id}/pushNotificationConfigs") => {
                let config = json!({"pushNotificationConfig": {"id": "c2", "url": "http://127.0.0.1:9/hook"}});
                json!({"configId": "c2", "config": config})
            }
            ("post", "/v1/chat/completions") => {
                json!({"model": "demo", "messages": [{"role": "user", "content": text}]})
            }
            ("post", "/v1/a2a/agents/{agent}/message:send") => json!({"input": "hello"}),
            ("post", path) if path.ends_with(":cancel") => json!({}),
            _ => Value::Null,
        }
    }

    fn check_body(&self, body: &Value) -> Result<(), String> {
        let described = &self.operation["requestBody"];
        let schema = &described["content"]["application/json"]["schema"];
        match (body, described["required"] == true) {
            (Value::Null, true) => Err(format!("{} needs a body", self.path)),
            (body, _) if !body.is_null() && !schema.is_null() => self.check_value(body, schema, "its request"),
            _ => Ok(()),
        }
    }

    fn check_reply(&self, path: &str, body: &Value) -> Result<u16, String> {
        let what = format!("{} {path} ({:?})", self.verb, self.version);
        let is_v1 = self.operation["tags"][0] == "A2A 1.0";
        let headers: Vec<_> =
            self.version.filter(|_| is_v1).map(|version| ("A2A-Version", version)).into_iter().collect();
        let verb = self.verb.to_uppercase();
        let (status, content_type, value): (u16, String, Value) = if self.is_stream() {
            let bytes = if body.is_null() { String::new() } else { body.to_string() };
            let opened = sse::open(self.fixture.server.address, &verb, path, &headers, bytes.as_bytes()).unwrap();
            let mut events = opened.map_err(|reply| format!("{what}: {}", reply.text()))?;
            let frame = events.next_frame().unwrap().expect("an event");
            (200, "text/event-stream".to_owned(), serde_json::from_str(&frame.data).unwrap())
        } else {
            let reply = self.fixture.ask(&verb, path, &headers, body);
            let content_type = reply.header("content-type").unwrap_or_default();
            let content_type = content_type.split(';').next().unwrap_or_default().to_owned();
            (reply.status, content_type, serde_json::from_slice(&reply.body).unwrap_or_default())
        };
        let responses = &self.operation["responses"];
        let mut response = responses.get(status.to_string()).unwrap_or(&responses["default"]);
        if let Some(place) = response["$ref"].as_str() {
            response = self.document.pointer(place.trim_start_matches('#')).unwrap();
        }
        let told = value.to_string();
        // A path that is not served is told by words that no operation has.
        if response.is_null() || told.contains("there is nothing at") || status == 405 {
            return Err(format!("{what}: {status} is not described: {told}"));
        }
        match response["content"].get(&content_type) {
            Some(content) => self.check_value(&value, &content["schema"], &what).map(|()| status),
            None => Err(format!("{what}: {status} as {content_type} is not described: {told}")),
        }
    }

    fn is_stream(&self) -> bool {
        self.operation["responses"]["200"]["content"].get("text/event-stream").is_some()
    }

    fn check_value(&self, value: &Value, schema: &Value, what: &str) -> Result<(), String> {
        matches(self.document, value, schema, "").map_err(|why| format!("{what}: {why}: {value}"))
    }
}

/// The part of JSON Schema that the document uses. A keyword that is not known here fails, so that none is overlooked.
fn matches(document: &Value, value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Err(format!("{place}: {schema} is no schema")) };
    let fail = |why: String| Err(format!("{}: {why}", if place.is_empty() { "the whole" } else { place }));
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let target = document.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap();
                matches(document, value, target, place)?;
            }
            "type" => {
                let is_of = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("{other}"),
                };
                let is_one = wanted.as_array().map_or_else(|| is_of(wanted), |names| names.iter().any(is_of));
                if !is_one {
                    return fail(format!("{value} is not {wanted}"));
                }
            }
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                return fail(format!("{value} is not one of {wanted}"));
            }
            "required" => {
                let names = wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                if let Some(missing) =
                    value.as_object().and_then(|object| names.into_iter().find(|name| !object.contains_key(*name)))
                {
                    return fail(format!("{missing} is missing"));
                }
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        matches(document, member, schema, &format!("{place}/{name}"))?;
                    }
                }
            }
            "additionalProperties" if *wanted == false => {
                let known = &schema["properties"];
                let unknown =
                    value.as_object().and_then(|object| object.keys().find(|name| known.get(*name).is_none()));
                if let Some(name) = unknown {
                    return fail(format!("{name} is not described"));
                }
            }
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    matches(document, item, wanted, &format!("{place}/{at}"))?;
                }
            }
            "oneOf" => {
                let tried: Vec<_> =
                    wanted.as_array().unwrap().iter().map(|one| matches(document, value, one, place)).collect();
                if tried.iter().filter(|result| result.is_ok()).count() != 1 {
                    return fail(format!("not exactly one alternative fits: {tried:?}"));
                }
            }
            "maxLength"
                if value.as_str().is_some_and(|text| text.chars().count() as u64 > wanted.as_u64().unwrap()) =>
            {
                return fail("is too long".to_owned());
            }
            "maxProperties"
                if value.as_object().is_some_and(|object| object.len() as u64 > wanted.as_u64().unwrap()) =>
            {
                return fail("has too many members".to_owned());
            }
            "format" if wanted == "date-time" && !value.as_str().is_some_and(|time| time.ends_with('Z')) => {
                return fail(format!("{value} is no time"));
            }
            "enum"
            | "additionalProperties"
            | "maxLength"
            | "maxProperties"
            | "format"
            | "description"
            | "contentEncoding"
            | "minimum"
            | "maximum" => {}
            other => panic!("the check does not know {other}"),
        }
    }
    Ok(())
}

#[test]
fn the_check_finds_what_is_not_described() {
    let document = json!({"components": {"schemas": {"A": {"type": "string", "enum": ["x"]}}}});
    let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties":
        {"a": {"$ref": "#/components/schemas/A"}, "n": {"type": ["integer", "null"]}, "l": {"type": "array", "items": {"type": "boolean"}},
         "o": {"oneOf": [{"type": "string"}, {"type": "null"}]}, "s": {"type": "string", "maxLength": 2}}});
    for (value, expected) in [
        (json!({"a": "x", "n": null, "l": [true], "o": null, "s": "éé"}), None),
        (json!({}), Some("the whole: a is missing")),
        (json!({"a": "y"}), Some("/a: \"y\" is not one of [\"x\"]")),
        (json!({"a": "x", "b": 1}), Some("the whole: b is not described")),
        (json!({"a": "x", "n": 1.5}), Some("/n: 1.5 is not [\"integer\",\"null\"]")),
        (json!({"a": "x", "l": [1]}), Some("/l/0: 1 is not \"boolean\"")),
        (json!({"a": "x", "s": "abc"}), Some("/s: is too long")),
        (json!([]), Some("is not \"object\"")),
    ] {
        let told = matches(&document, &value, &schema, "").err();
        match expected {
            None => assert_eq!(told, None),
            Some(words) => assert!(told.as_deref().is_some_and(|told| told.contains(words)), "{value}: {told:?}"),
        }
    }
    assert!(matches(&document, &json!({"a": "x", "o": 1}), &schema, "").is_err());
}

//! Each protocol: what is read from its requests, and what its answers look like.

use handover_model::{Api, Message, ModelServer, Reply, Role};
use serde_json::{Value, json};

use super::client::ask;

/// A request of one protocol in which the user said "task", the model called the shell, it printed
/// "printed", and the user said "steered".
struct Sample {
    api: Api,
    path: &'static str,
    /// The same for an answer in one piece.
    whole_path: &'static str,
    body: Value,
    /// The tool's name and the arguments that run `ls`.
    shell: (&'static str, Value),
}

fn samples() -> Vec<Sample> {
    vec![
        Sample {
            api: Api::ChatCompletions,
            path: "/v1/chat/completions",
            whole_path: "/v1/chat/completions",
            body: json!({
                "model": "m",
                "stream": true,
                "messages": [
                    {"role": "system", "content": "rules"},
                    {"role": "user", "content": [{"type": "text", "text": "task"}]},
                    {"role": "assistant", "content": "mine", "tool_calls": [
                        {"id": "c", "function": {"name": "bash", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "c", "content": "printed"},
                    {"role": "user", "content": "steered"},
                ],
                "tools": [{"type": "function", "function": {"name": "bash"}}],
            }),
            shell: ("bash", json!({"command": "ls"})),
        },
        Sample {
            api: Api::Responses,
            path: "/v1/responses",
            whole_path: "/v1/responses",
            body: json!({
                "model": "m",
                "stream": true,
                "instructions": "rules",
                "input": [
                    {"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": "task"}]},
                    {"type": "message", "role": "assistant",
                        "content": [{"type": "output_text", "text": "mine"}]},
                    {"type": "function_call", "name": "exec_command", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "printed"},
                    {"role": "user", "content": "steered"},
                ],
                "tools": [{"type": "web_search"}, {"type": "function", "name": "exec_command"}],
            }),
            shell: (
                "exec_command",
                json!({"cmd": "ls", "yield_time_ms": 30_000}),
            ),
        },
        Sample {
            api: Api::Messages,
            path: "/v1/messages?beta=true",
            whole_path: "/v1/messages",
            body: json!({
                "model": "m",
                "stream": true,
                "system": [{"type": "text", "text": "rules"}],
                "messages": [
                    {"role": "user", "content": "task"},
                    {"role": "assistant", "content": [
                        {"type": "text", "text": "mine"},
                        {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c", "content": [
                            {"type": "text", "text": "printed"}]},
                        {"type": "text", "text": "steered"}]},
                ],
                "tools": [{"name": "Bash"}],
            }),
            shell: (
                "Bash",
                json!({"command": "ls", "description": "a step of the test"}),
            ),
        },
        Sample {
            api: Api::Gemini,
            path: "/v1beta/models/m:streamGenerateContent?alt=sse",
            whole_path: "/v1beta/models/m:generateContent",
            body: json!({
                "systemInstruction": {"parts": [{"text": "rules"}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "task"}]},
                    {"role": "model", "parts": [
                        {"text": "mine"}, {"functionCall": {"name": "run_shell_command"}}]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"response": {"output": "printed"}}},
                        {"text": "steered"}]},
                ],
                "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
            }),
            shell: (
                "run_shell_command",
                json!({"command": "ls", "description": "a step of the test"}),
            ),
        },
    ]
}

#[test]
fn requests_are_read_alike() {
    for sample in samples() {
        let server = ModelServer::start();
        ask(&server, sample.path, &sample.body).events();
        let request = server.requests().remove(0);
        assert_eq!(request.api, Some(sample.api));
        assert_eq!(request.body, sample.body);
        assert!(request.is_turn(), "{request:?}");
        let said = |role| {
            let of_role = |message: &&Message| message.role == role;
            let messages = request.messages.iter().filter(of_role);
            messages
                .map(|message| message.text.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(said(Role::System), ["rules"], "{request:?}");
        assert_eq!(said(Role::User), ["task", "steered"], "{request:?}");
        assert_eq!(said(Role::Tool), ["printed"], "{request:?}");
        assert_eq!(said(Role::Assistant)[0], "mine", "{request:?}");
        assert!(
            said(Role::Assistant)[1].contains(sample.shell.0),
            "{request:?}"
        );
        assert!(server.saw("steered") && !server.saw("mine"));
        assert!(server.answered("printed"));
    }
}

#[test]
fn a_streamed_reply_has_the_text_in_chunks_and_then_the_call() {
    for sample in samples() {
        let server = ModelServer::start();
        let reply = Reply::stream(["one ", "two"]).and_shell("ls");
        server.script("task", [reply]);
        let answer = ask(&server, sample.path, &sample.body);
        assert_eq!(answer.status, 200);
        let events = answer.events();
        let (texts, calls) = streamed(sample.api, &events);
        assert_eq!(texts, ["one ", "two"], "{events:?}");
        let (name, arguments) = sample.shell;
        assert_eq!(calls, [(name.to_owned(), arguments)], "{events:?}");
    }
}

#[test]
fn a_whole_reply_is_one_object() {
    for sample in samples() {
        let server = ModelServer::start();
        server.script("task", [Reply::text("one").and_shell("ls")]);
        let mut body = sample.body;
        body.as_object_mut().expect("an object").remove("stream");
        let reply = ask(&server, sample.whole_path, &body).json();
        let (text, name, arguments) = match sample.api {
            Api::ChatCompletions => (
                "/choices/0/message/content",
                "/choices/0/message/tool_calls/0/function/name",
                "/choices/0/message/tool_calls/0/function/arguments",
            ),
            Api::Responses => (
                "/output/0/content/0/text",
                "/output/1/name",
                "/output/1/arguments",
            ),
            Api::Messages => ("/content/0/text", "/content/1/name", "/content/1/input"),
            Api::Gemini => (
                "/candidates/0/content/parts/0/text",
                "/candidates/0/content/parts/1/functionCall/name",
                "/candidates/0/content/parts/1/functionCall/args",
            ),
        };
        let at = |pointer| reply.pointer(pointer).unwrap_or_else(|| panic!("{reply}"));
        assert_eq!(at(text), "one");
        assert_eq!(at(name), sample.shell.0);
        assert_eq!(parsed(at(arguments)), sample.shell.1);
    }
}

#[test]
fn a_call_of_a_tool_in_a_group_names_the_group() {
    let server = ModelServer::start();
    server.script("task", [Reply::tool("spawn", json!({"message": "go"}))]);
    let body = json!({
        "input": "task",
        "tools": [{"type": "namespace", "name": "agents", "tools": [{"name": "spawn"}]}],
    });
    let reply = ask(&server, "/v1/responses", &body).json();
    let call = &reply["output"][0];
    assert_eq!(
        (&call["namespace"], &call["name"]),
        (&json!("agents"), &json!("spawn"))
    );
    assert_eq!(server.requests()[0].tools, ["spawn"]);
}

#[test]
fn what_is_asked_beside_is_answered() {
    let server = ModelServer::start();
    let counted = ask(&server, "/v1/messages/count_tokens", &json!({})).json();
    assert_eq!(counted["input_tokens"], 1);
    let models = super::client::send(&server, "GET", "/v1/models?x=1", &Value::Null);
    assert_eq!(models.json()["object"], "list");
    let other = ask(&server, "/elsewhere", &json!({}));
    assert_eq!(other.status, 404);
    assert_eq!(other.json()["error"]["code"], 404);
    assert!(server.requests().iter().all(|request| !request.is_turn()));
}

/// The chunks of text and the tool calls in the events of a stream.
fn streamed(api: Api, events: &[Value]) -> (Vec<String>, Vec<(String, Value)>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    let mut text = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() {
            texts.push(text.to_owned());
        }
    };
    let mut name = Value::Null;
    for event in events {
        match api {
            Api::ChatCompletions => {
                let delta = &event["choices"][0]["delta"];
                text(&delta["content"]);
                let call = &delta["tool_calls"][0]["function"];
                if call.is_object() {
                    calls.push((call["name"].clone(), parsed(&call["arguments"])));
                }
            }
            Api::Responses if event["type"] == "response.output_text.delta" => {
                text(&event["delta"]);
            }
            Api::Responses if event["type"] == "response.output_item.done" => {
                let item = &event["item"];
                if item["type"] == "function_call" {
                    calls.push((item["name"].clone(), parsed(&item["arguments"])));
                }
            }
            Api::Messages if event["type"] == "content_block_start" => {
                name = event["content_block"]["name"].clone();
            }
            Api::Messages if event["type"] == "content_block_delta" => {
                text(&event["delta"]["text"]);
                if event["delta"]["type"] == "input_json_delta" {
                    calls.push((name.clone(), parsed(&event["delta"]["partial_json"])));
                }
            }
            Api::Responses | Api::Messages => {}
            Api::Gemini => {
                let part = &event["candidates"][0]["content"]["parts"][0];
                text(&part["text"]);
                let call = &part["functionCall"];
                if call.is_object() {
                    calls.push((call["name"].clone(), call["args"].clone()));
                }
            }
        }
    }
    let named =
        |(name, arguments): (Value, Value)| (name.as_str().expect("a name").to_owned(), arguments);
    (texts, calls.into_iter().map(named).collect())
}

/// Arguments that are sent as a text of JSON, or as they are.
fn parsed(arguments: &Value) -> Value {
    match arguments.as_str() {
        Some(text) => serde_json::from_str(text).expect("arguments are JSON"),
        None => arguments.clone(),
    }
}

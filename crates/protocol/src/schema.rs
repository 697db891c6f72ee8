//! JSON Schemas of the wire, which also tie each method to its types.

use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
use serde_json::{Map, Value, json};

use crate::method::Method;
use crate::*;

/// The schemas of one method.
#[derive(Clone, Debug)]
pub struct MethodSchema {
    /// Of its parameters.
    pub params: Schema,
    /// Of its result.
    pub result: Schema,
}

/// What is done with the types of one method.
trait Types {
    type Out;
    fn of<P: JsonSchema, R: JsonSchema>(self) -> Self::Out;
}

/// Gives the types of the parameters and the result of `method` to `types`.
fn with_types<T: Types>(method: Method, types: T) -> T::Out {
    match method {
        Method::Hello => types.of::<HelloParams, HelloResult>(),
        Method::Ping => types.of::<PingParams, PingResult>(),
        Method::List => types.of::<ListParams, ListResult>(),
        Method::Spawn => types.of::<SpawnParams, AgentState>(),
        Method::Steer => types.of::<SteerParams, SteerResult>(),
        Method::Abort => types.of::<AbortParams, AbortResult>(),
        Method::Result => types.of::<ResultParams, ResultResult>(),
        Method::Subscribe => types.of::<SubscribeParams, SubscribeResult>(),
        Method::Journal => types.of::<JournalParams, JournalResult>(),
        Method::ControlAcquire => types.of::<ControlAcquireParams, ControlAcquireResult>(),
        Method::ControlRenew => types.of::<ControlRenewParams, ControlRenewResult>(),
        Method::ControlReclaim => types.of::<ControlReclaimParams, ControlReclaimResult>(),
        Method::ControlReturn => types.of::<ControlReturnParams, ControlReturnResult>(),
        Method::ControlStatus => types.of::<ControlStatusParams, ControlStatusResult>(),
        Method::ControlRevoke => types.of::<ControlRevokeParams, ControlStatusResult>(),
        Method::ControlPause => types.of::<ControlPauseParams, ControlStatusResult>(),
        Method::ControlResume => types.of::<ControlResumeParams, ControlStatusResult>(),
        Method::ControlRequest => types.of::<ControlRequestParams, ControlRequestResult>(),
        Method::ControlGive => types.of::<ControlGiveParams, ControlAnswerResult>(),
        Method::ControlRefuse => types.of::<ControlRefuseParams, ControlAnswerResult>(),
        Method::ControlPermit => types.of::<ControlPermitParams, ControlPermitResult>(),
        Method::ControlComplete => types.of::<ControlCompleteParams, ControlCompleteResult>(),
        Method::ControlSecret => types.of::<ControlSecretParams, ControlSecretResult>(),
        Method::DesktopNew => types.of::<DesktopNewParams, DesktopNewResult>(),
        Method::DesktopDestroy => types.of::<DesktopDestroyParams, DesktopDestroyResult>(),
        Method::DesktopLaunch => types.of::<DesktopLaunchParams, DesktopLaunchResult>(),
        Method::DesktopScreenshot => types.of::<DesktopScreenshotParams, DesktopScreenshotResult>(),
        Method::DesktopClick => types.of::<DesktopClickParams, ActionResult>(),
        Method::DesktopMove => types.of::<DesktopMoveParams, ActionResult>(),
        Method::DesktopDoubleClick => types.of::<DesktopDoubleClickParams, ActionResult>(),
        Method::DesktopScroll => types.of::<DesktopScrollParams, ActionResult>(),
        Method::DesktopDrag => types.of::<DesktopDragParams, ActionResult>(),
        Method::DesktopType => types.of::<DesktopTypeParams, ActionResult>(),
        Method::DesktopKey => types.of::<DesktopKeyParams, ActionResult>(),
        Method::DesktopWindows => types.of::<DesktopWindowsParams, DesktopWindowsResult>(),
        Method::CdpOpen => types.of::<CdpOpenParams, CdpOpenResult>(),
        Method::ViewOpen => types.of::<ViewOpenParams, ViewOpenResult>(),
        Method::RequestHuman => types.of::<RequestHumanParams, RequestHumanResult>(),
        Method::RequestStatus => types.of::<RequestStatusParams, RequestStatusResult>(),
        Method::Answer => types.of::<AnswerParams, AnswerResult>(),
        Method::Stop => types.of::<StopParams, StopResult>(),
        Method::StopAllInput => types.of::<StopAllInputParams, StopAllInputResult>(),
    }
}

/// The schemas of `method`, each whole by itself.
pub fn method_schema(method: Method) -> MethodSchema {
    struct Whole;
    impl Types for Whole {
        type Out = MethodSchema;
        fn of<P: JsonSchema, R: JsonSchema>(self) -> MethodSchema {
            MethodSchema {
                params: schema_for!(P),
                result: schema_for!(R),
            }
        }
    }
    with_types(method, Whole)
}

/// The whole wire as one JSON Schema, which a line of the attach socket, without its newline, fits, and
/// which has every type of it in `$defs`. `methods` and `notifications`, which are no words of JSON
/// Schema, name the types of each; `Manifest` is that of `attach.json`.
pub fn document() -> Value {
    let mut generator = SchemaGenerator::default();
    let mut methods = Map::new();
    for &method in Method::ALL {
        let types = with_types(method, References(&mut generator));
        methods.insert(method.name().to_owned(), json!(types));
    }
    let notifications = notifications(&mut generator);
    generator.subschema_for::<Manifest>();
    generator.subschema_for::<ErrorCode>();
    let mut definitions = generator.take_definitions(true);
    let called = |(name, types): (&String, &Value)| {
        json!({
            "properties": { "method": { "const": name }, "params": types["params"] },
        })
    };
    let requests: Vec<Value> = methods.iter().map(called).collect();
    let news: Vec<Value> = notifications.iter().map(called).collect();
    definitions.insert("Request".into(), request(requests));
    definitions.insert("Notification".into(), notification(news));
    definitions.insert("Answer".into(), answer());
    definitions.insert("Error".into(), error());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The attach socket of Handover",
        "description": format!(
            "Version {PROTOCOL_VERSION} of the protocol. See protocol.md. Written from the types; do not edit."
        ),
        "anyOf": [
            { "$ref": "#/$defs/Request" },
            { "$ref": "#/$defs/Answer" },
            { "$ref": "#/$defs/Notification" },
        ],
        "methods": methods,
        "notifications": notifications,
        "$defs": definitions,
    })
}

/// References to the types of a method.
struct References<'a>(&'a mut SchemaGenerator);

impl Types for References<'_> {
    type Out = Value;
    fn of<P: JsonSchema, R: JsonSchema>(self) -> Value {
        json!({
            "params": self.0.subschema_for::<P>(),
            "result": self.0.subschema_for::<R>(),
        })
    }
}

fn notifications(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let types = [
        ("event", generator.subschema_for::<Event>()),
        ("gap", generator.subschema_for::<Gap>()),
        ("interrupt", generator.subschema_for::<Interrupt>()),
        ("lease_warning", generator.subschema_for::<LeaseWarning>()),
        ("lease_request", generator.subschema_for::<LeaseRequest>()),
        (
            "lease_request_ended",
            generator.subschema_for::<LeaseRequestEnded>(),
        ),
        ("lease_ended", generator.subschema_for::<LeaseEnded>()),
    ];
    types
        .into_iter()
        .map(|(name, params)| (name.to_owned(), json!({ "params": params })))
        .collect()
}

fn request(methods: Vec<Value>) -> Value {
    json!({
        "description": "One call; without `id` it gets no answer.",
        "type": "object",
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "type": ["integer", "number", "string", "null"] },
        },
        "required": ["jsonrpc", "method"],
        "anyOf": methods,
    })
}

fn notification(kinds: Vec<Value>) -> Value {
    json!({
        "description": "News from the host.",
        "type": "object",
        "properties": { "jsonrpc": { "const": "2.0" } },
        "required": ["jsonrpc", "method", "params"],
        "anyOf": kinds,
    })
}

fn answer() -> Value {
    json!({
        "description": "What came of a call: `methods` names the type of each result.",
        "type": "object",
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "type": ["integer", "number", "string", "null"] },
            "result": {},
            "error": { "$ref": "#/$defs/Error" },
        },
        "required": ["jsonrpc", "id"],
        "oneOf": [{ "required": ["result"] }, { "required": ["error"] }],
    })
}

fn error() -> Value {
    json!({
        "description": "Why a call was refused.",
        "type": "object",
        "properties": {
            "code": { "type": "integer", "description": "The number that JSON-RPC asks for." },
            "message": { "type": "string", "description": "One sentence, which says what to do." },
            "data": {
                "description": "Facts by name.",
                "type": "object",
                "properties": { "code": { "$ref": "#/$defs/ErrorCode" } },
                "required": ["code"],
            },
        },
        "required": ["code", "message", "data"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of the parameters, required ones first, as [`Method::shape`] should give them.
    fn members(schema: &Schema) -> Vec<String> {
        let required: Vec<_> = schema
            .get("required")
            .and_then(|list| list.as_array())
            .map(|list| list.iter().filter_map(|name| name.as_str()).collect())
            .unwrap_or_default();
        let mut members: Vec<_> = schema
            .get("properties")
            .and_then(|properties| properties.as_object())
            .map(|properties| properties.keys().collect::<Vec<_>>())
            .unwrap_or_default()
            .into_iter()
            .map(|name| {
                let optional = if required.contains(&name.as_str()) {
                    ""
                } else {
                    "?"
                };
                format!("{name}{optional}")
            })
            .collect();
        members.sort();
        members
    }

    #[test]
    fn shapes_agree_with_the_types() {
        for &method in Method::ALL {
            let mut depth = 0;
            let shape = method.shape().trim_start_matches('{').trim_end_matches('}');
            // Split at the commas outside brackets, and keep what stands before a colon.
            let mut named: Vec<String> = shape
                .split(|c| {
                    depth += i32::from(matches!(c, '{' | '[')) - i32::from(matches!(c, '}' | ']'));
                    c == ',' && depth == 0
                })
                .map(|part| part.trim().split(':').next().unwrap_or_default().to_owned())
                .filter(|part| !part.is_empty())
                .collect();
            named.sort();
            assert_eq!(members(&method_schema(method).params), named, "{method}");
        }
    }
}

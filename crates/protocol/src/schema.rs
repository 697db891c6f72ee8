//! JSON Schemas of every method, which also tie each method to its types.

use schemars::{JsonSchema, Schema, schema_for};

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

fn schemas<P: JsonSchema, R: JsonSchema>() -> MethodSchema {
    MethodSchema {
        params: schema_for!(P),
        result: schema_for!(R),
    }
}

/// The schemas of `method`.
pub fn method_schema(method: Method) -> MethodSchema {
    match method {
        Method::Hello => schemas::<HelloParams, HelloResult>(),
        Method::Ping => schemas::<PingParams, PingResult>(),
        Method::List => schemas::<ListParams, ListResult>(),
        Method::Spawn => schemas::<SpawnParams, AgentState>(),
        Method::Steer => schemas::<SteerParams, SteerResult>(),
        Method::Abort => schemas::<AbortParams, AbortResult>(),
        Method::Result => schemas::<ResultParams, ResultResult>(),
        Method::Subscribe => schemas::<SubscribeParams, SubscribeResult>(),
        Method::Journal => schemas::<JournalParams, JournalResult>(),
        Method::ControlAcquire => schemas::<ControlAcquireParams, ControlAcquireResult>(),
        Method::ControlRenew => schemas::<ControlRenewParams, ControlRenewResult>(),
        Method::ControlReclaim => schemas::<ControlReclaimParams, ControlReclaimResult>(),
        Method::ControlReturn => schemas::<ControlReturnParams, ControlReturnResult>(),
        Method::ControlStatus => schemas::<ControlStatusParams, ControlStatusResult>(),
        Method::ControlRevoke => schemas::<ControlRevokeParams, ControlStatusResult>(),
        Method::ControlPause => schemas::<ControlPauseParams, ControlStatusResult>(),
        Method::ControlResume => schemas::<ControlResumeParams, ControlStatusResult>(),
        Method::ControlRequest => schemas::<ControlRequestParams, ControlRequestResult>(),
        Method::ControlGive => schemas::<ControlGiveParams, ControlAnswerResult>(),
        Method::ControlRefuse => schemas::<ControlRefuseParams, ControlAnswerResult>(),
        Method::ControlPermit => schemas::<ControlPermitParams, ControlPermitResult>(),
        Method::ControlComplete => schemas::<ControlCompleteParams, ControlCompleteResult>(),
        Method::ControlSecret => schemas::<ControlSecretParams, ControlSecretResult>(),
        Method::DesktopNew => schemas::<DesktopNewParams, DesktopNewResult>(),
        Method::DesktopDestroy => schemas::<DesktopDestroyParams, DesktopDestroyResult>(),
        Method::DesktopLaunch => schemas::<DesktopLaunchParams, DesktopLaunchResult>(),
        Method::DesktopScreenshot => schemas::<DesktopScreenshotParams, DesktopScreenshotResult>(),
        Method::DesktopClick => schemas::<DesktopClickParams, ActionResult>(),
        Method::DesktopMove => schemas::<DesktopMoveParams, ActionResult>(),
        Method::DesktopDoubleClick => schemas::<DesktopDoubleClickParams, ActionResult>(),
        Method::DesktopScroll => schemas::<DesktopScrollParams, ActionResult>(),
        Method::DesktopDrag => schemas::<DesktopDragParams, ActionResult>(),
        Method::DesktopType => schemas::<DesktopTypeParams, ActionResult>(),
        Method::DesktopKey => schemas::<DesktopKeyParams, ActionResult>(),
        Method::DesktopWindows => schemas::<DesktopWindowsParams, DesktopWindowsResult>(),
        Method::ViewOpen => schemas::<ViewOpenParams, ViewOpenResult>(),
        Method::RequestHuman => schemas::<RequestHumanParams, RequestHumanResult>(),
        Method::RequestStatus => schemas::<RequestStatusParams, RequestStatusResult>(),
        Method::Answer => schemas::<AnswerParams, AnswerResult>(),
        Method::Stop => schemas::<StopParams, StopResult>(),
        Method::StopAllInput => schemas::<StopAllInputParams, StopAllInputResult>(),
    }
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

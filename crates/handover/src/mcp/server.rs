//! The MCP server: lists the tools and carries out calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handover_protocol::{AgentId, ErrorCode, Method, Refusal};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, InputRequiredResult,
    JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::agents::{Agents, LONGEST_WAIT};
use super::arguments::{self, Misfit};
use super::link::Link;
use super::tools::{Act, Entry};
use super::{answer, elicit};

/// How long the host may take for a call. It answers within 5 s that a display does not.
const CALL_TIME: Duration = Duration::from_secs(15);
/// How long it may take to type a text, which goes key by key where a paste is not taken.
const TYPING_TIME: Duration = Duration::from_secs(60);
/// Longest wait of one `request_status`, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;
/// How much longer than asked the host may take to answer a waiting call.
const WAIT_GRACE: Duration = Duration::from_secs(5);
/// Time between two progress notifications of a waiting call.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// What the server tells every client about itself, for the model to read.
const INSTRUCTIONS: &str = "\
These tools drive a private Linux desktop that a person may watch and take over at any time. \
Start with desktop_screenshot; coordinates are its pixels. When you meet something only a person \
may do (a password, a code, a captcha, a payment, a decision), call request_human, then \
request_status with waitMs until it is no longer open. While a person is in control your actions \
answer human_control_active; do not work around it. After a takeover read the person's note in \
takeover_status and take a fresh screenshot before you act. Never ask for or type secrets. \
agent_spawn starts another agent that works for you; the other agent tools reach only agents below \
you.";

/// The server for one agent.
#[derive(Clone)]
pub(super) struct Server {
    link: Link,
    agents: Agents,
    /// The desktop that calls mean which name none.
    desktop: Option<String>,
    /// What the client is to put to its person and was not asked yet, by request id.
    unasked: Arc<Mutex<HashMap<String, String>>>,
}

impl Server {
    /// A server for the agent `own`, as far as that is known, that speaks to the host over `link`;
    /// `desktop` is meant by calls that name none.
    pub(super) fn new(link: Link, desktop: Option<String>, own: Option<AgentId>) -> Self {
        Self {
            agents: Agents::new(link.clone(), own),
            link,
            desktop,
            unasked: Arc::default(),
        }
    }

    async fn run(
        &self,
        entry: &Entry,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refusal> {
        let schema = &entry.tool.input_schema;
        let given = request.arguments.unwrap_or_default();
        let method = entry.act.method();
        let result = match entry.act {
            Act::Desktop(_) => {
                let params = self.desktop_params(method, given, schema)?;
                let within = match method {
                    Method::DesktopType => TYPING_TIME,
                    _ => CALL_TIME,
                };
                answer::success(self.link.call(method, params, within).await?).await
            }
            Act::Screenshot => {
                let mut params = self.on_desktop::<arguments::OnDesktop>(given, schema)?;
                params["inline"] = true.into();
                answer::screenshot(self.link.call(method, params, CALL_TIME).await?).await
            }
            Act::TakeoverStatus => {
                let params = self.on_desktop::<arguments::OnDesktop>(given, schema)?;
                answer::success(self.link.call(method, params, CALL_TIME).await?).await
            }
            Act::RequestHuman => {
                let params = self.on_desktop::<arguments::RequestHuman>(given, schema)?;
                self.request_human(params, context).await?
            }
            Act::RequestStatus => {
                let asked: arguments::RequestStatus = parse(given, schema)?;
                if let Some(text) = request.input_responses.as_ref().and_then(elicit::answer_in) {
                    // If somebody else was faster, their answer counts: the status tells.
                    let passed = elicit::pass_on(&self.link, &asked.request_id, &text).await;
                    passed.or_else(|refusal| match refusal.code {
                        ErrorCode::BadParams => Ok(()),
                        _ => Err(refusal),
                    })?;
                } else if let Some(question) = self.to_elicit(&asked.request_id, context) {
                    return Ok(question.into());
                }
                answer::success(self.request_status(asked, context).await?).await
            }
            Act::AgentSpawn => {
                let asked = parse(given, schema)?;
                answer::success(self.agents.spawn(&asked).await?).await
            }
            Act::AgentList => {
                let arguments::Nothing {} = parse(given, schema)?;
                answer::success(self.agents.list().await?).await
            }
            Act::AgentSteer => {
                let steered = self.agents.steer(parse(given, schema)?);
                let steered =
                    with_progress(steered, context, LONGEST_WAIT, "waiting for a receipt");
                answer::success(steered.await?).await
            }
            Act::AgentAbort => {
                let arguments::OneAgent { id } = parse(given, schema)?;
                answer::success(self.agents.abort(&id).await?).await
            }
            Act::AgentResult => {
                let arguments::OneAgent { id } = parse(given, schema)?;
                answer::success(self.agents.result(&id).await?).await
            }
            Act::AgentWait => {
                let asked: arguments::AgentWait = parse(given, schema)?;
                let within = Agents::wait_time(&asked);
                let ended = self.agents.wait(&asked.id, within);
                let ended = with_progress(ended, context, within, "waiting for an agent");
                answer::success(ended.await?).await
            }
        };
        Ok(result.into())
    }

    /// Reads the arguments of a tool that maps to one method of the host.
    fn desktop_params(
        &self,
        method: Method,
        given: JsonObject,
        schema: &JsonObject,
    ) -> Result<Value, Refusal> {
        match method {
            Method::DesktopLaunch => self.on_desktop::<arguments::Launch>(given, schema),
            Method::DesktopClick | Method::DesktopDoubleClick => {
                self.on_desktop::<arguments::Click>(given, schema)
            }
            Method::DesktopMove => self.on_desktop::<arguments::Point>(given, schema),
            Method::DesktopScroll => self.on_desktop::<arguments::Scroll>(given, schema),
            Method::DesktopDrag => self.on_desktop::<arguments::Drag>(given, schema),
            Method::DesktopType => self.on_desktop::<arguments::Type>(given, schema),
            Method::DesktopKey => self.on_desktop::<arguments::Key>(given, schema),
            _ => self.on_desktop::<arguments::OnDesktop>(given, schema),
        }
    }

    /// Reads arguments as `T` and gives them the server's desktop if they name none.
    fn on_desktop<T: DeserializeOwned + Serialize>(
        &self,
        given: JsonObject,
        schema: &JsonObject,
    ) -> Result<Value, Refusal> {
        let arguments: T = parse(given, schema)?;
        let mut params = serde_json::to_value(arguments)
            .map_err(|_| Refusal::new(ErrorCode::Internal, "the arguments cannot be passed on"))?;
        if let (Some(desktop), Value::Object(members)) = (&self.desktop, &mut params) {
            members
                .entry("desktop")
                .or_insert_with(|| desktop.clone().into());
        }
        Ok(params)
    }

    async fn request_human(
        &self,
        params: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Refusal> {
        let question = params["question"].as_str().map(|question| {
            let reason = params["reason"].as_str().unwrap_or_default();
            format!("{reason}\n\n{question}")
        });
        let result = self
            .link
            .call(Method::RequestHuman, params, CALL_TIME)
            .await?;
        if let (Some(question), Some(id)) = (question, result["requestId"].as_str())
            && elicit::offered(context.client_capabilities().as_ref())
        {
            if forbids_server_requests(context) {
                self.unasked().insert(id.to_owned(), question);
            } else {
                let (peer, link) = (context.peer.clone(), self.link.clone());
                tokio::spawn(elicit::ask(peer, link, id.to_owned(), question));
            }
        }
        Ok(answer::success(result).await)
    }

    /// The question of a request that the client's person was not asked yet, for clients that are
    /// asked by way of a tool's answer.
    fn to_elicit(
        &self,
        request_id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Option<InputRequiredResult> {
        if !forbids_server_requests(context) {
            return None;
        }
        let question = self.unasked().remove(request_id)?;
        elicit::input_requests(&question).map(InputRequiredResult::from_input_requests)
    }

    async fn request_status(
        &self,
        asked: arguments::RequestStatus,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, Refusal> {
        let wait_ms = asked.wait_ms.unwrap_or(0).min(LONGEST_WAIT_MS);
        let params = json!({"requestId": asked.request_id, "waitMs": wait_ms});
        let within = Duration::from_millis(wait_ms) + WAIT_GRACE;
        let status = self.link.call(Method::RequestStatus, params, within);
        let longest = Duration::from_millis(wait_ms);
        with_progress(status, context, longest, "waiting for a person").await
    }

    fn unasked(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        // The map stays whole whatever panicked while holding it.
        self.unasked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("handover", env!("CARGO_PKG_VERSION")).with_title("Handover"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Entry::all()
            .iter()
            .map(|entry| entry.tool.clone())
            .collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Entry::named(name).map(|entry| entry.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = Entry::named(&request.name) else {
            return Err(ErrorData::invalid_params(
                "there is no tool of that name",
                None,
            ));
        };
        tokio::select! {
            result = self.run(entry, request, &context) => {
                Ok(result.unwrap_or_else(|refusal| answer::refused(&refusal).into()))
            }
            // The client does not read the answer to a call that it cancelled.
            () = context.ct.cancelled() => Ok(CallToolResult::error(Vec::new()).into()),
        }
    }
}

/// Whether the client speaks a protocol in which servers make no requests of their own.
fn forbids_server_requests(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Carries out a call that may take up to `longest`, and tells the client again and again that it still
/// waits.
async fn with_progress<T>(
    call: impl Future<Output = T>,
    context: &RequestContext<RoleServer>,
    longest: Duration,
    message: &str,
) -> T {
    tokio::select! {
        result = call => result,
        never = report_progress(context, longest, message) => match never {},
    }
}

/// Tells the client again and again that the call still waits, if it asked to be told.
async fn report_progress(
    context: &RequestContext<RoleServer>,
    longest: Duration,
    message: &str,
) -> std::convert::Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let start = tokio::time::Instant::now();
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        let progress = ProgressNotificationParam::new(token.clone(), start.elapsed().as_secs_f64())
            .with_total(longest.as_secs_f64())
            .with_message(message);
        // A client that is gone is noticed by the service itself.
        let _ = context.peer.notify_progress(progress).await;
    }
}

fn parse<T: DeserializeOwned>(given: JsonObject, schema: &JsonObject) -> Result<T, Refusal> {
    arguments::parse(given, schema)
        .map_err(|misfit: Misfit| Refusal::new(ErrorCode::BadParams, misfit.to_string()))
}

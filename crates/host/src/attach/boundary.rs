//! What the attach socket asks of the session behind it.
//!
//! The server parses, checks who is calling, finds the desktop and writes answers; everything else
//! is behind these traits, so that it can be tested without a display.

use std::time::Duration;

use handover_control::Moment;
use handover_protocol::{
    AbortParams, AbortResult, ActionResult, AgentId, AgentState, AgentView, CdpOpenParams,
    CdpOpenResult, ControlAcquireParams, ControlAcquireResult, ControlAnswerResult,
    ControlChangeParams, ControlCompleteParams, ControlCompleteResult, ControlPermitParams,
    ControlPermitResult, ControlReclaimParams, ControlRenewResult, ControlRequestParams,
    ControlReturnParams, ControlReturnResult, ControlSecretParams, ControlSecretResult,
    ControlStatusResult, DesktopClickParams, DesktopDestroyResult, DesktopDragParams, DesktopId,
    DesktopKeyParams, DesktopLaunchParams, DesktopLaunchResult, DesktopMoveParams,
    DesktopNewParams, DesktopNewResult, DesktopScreenshotParams, DesktopScreenshotResult,
    DesktopScrollParams, DesktopTypeParams, DesktopView, DesktopWindowsParams,
    DesktopWindowsResult, LeaseParams, Refusal, ResultParams, ResultResult, SessionId, SpawnParams,
    SteerParams, SteerResult, ViewOpenParams, ViewOpenResult,
};

use crate::callers::{Caller, ConnectionId};
use crate::system::creds::Sender;

/// Beside `lease_stale`: the limit that has ended the lease. The end is on record.
pub const LIMIT: &str = "limit";

/// What a call comes to.
pub trait Answer<T>: Future<Output = Result<T, Refusal>> + Send {}
impl<T, F: Future<Output = Result<T, Refusal>> + Send> Answer<T> for F {}

/// One desktop, behind a cheap handle. Calls are done in the order in which their futures are first
/// polled.
///
/// A desktop records the acts on it and those that it refuses, of the kinds `desktop_*`, with their
/// epoch. Refusals of everything else are recorded by the server.
pub trait Desktop: Clone + Send + Sync + 'static {
    /// Its name.
    fn id(&self) -> &DesktopId;
    /// How it stands, for lists.
    fn view(&self) -> impl Future<Output = DesktopView> + Send;
    /// A connection has closed. Its leases end or are parked, and what it asked for is withdrawn.
    /// Does not wait, and may be called more than once.
    fn connection_closed(&self, connection: ConnectionId);

    /// `control.acquire`
    fn acquire(
        &self,
        caller: &Caller,
        params: ControlAcquireParams,
    ) -> impl Answer<ControlAcquireResult>;
    /// `control.renew`; of the holder of a lease that a limit has ended, the refusal has [`LIMIT`] with it
    fn renew(&self, caller: &Caller, params: LeaseParams) -> impl Answer<ControlRenewResult>;
    /// `control.reclaim`
    fn reclaim(
        &self,
        caller: &Caller,
        params: ControlReclaimParams,
    ) -> impl Answer<ControlAcquireResult>;
    /// `control.return`
    fn give_back(
        &self,
        caller: &Caller,
        params: ControlReturnParams,
    ) -> impl Answer<ControlReturnResult>;
    /// `control.status`
    fn status(&self, caller: &Caller) -> impl Answer<ControlStatusResult>;
    /// `control.revoke`
    fn revoke(
        &self,
        caller: &Caller,
        params: ControlChangeParams,
    ) -> impl Answer<ControlStatusResult>;
    /// `control.pause`
    fn pause(
        &self,
        caller: &Caller,
        params: ControlChangeParams,
    ) -> impl Answer<ControlStatusResult>;
    /// `control.resume`
    fn resume(
        &self,
        caller: &Caller,
        params: ControlChangeParams,
    ) -> impl Answer<ControlStatusResult>;
    /// `control.request`
    fn request(
        &self,
        caller: &Caller,
        params: ControlRequestParams,
    ) -> impl Answer<ControlAcquireResult>;
    /// `control.give`
    fn give(&self, caller: &Caller, params: LeaseParams) -> impl Answer<ControlAnswerResult>;
    /// `control.refuse`
    fn refuse(&self, caller: &Caller, params: LeaseParams) -> impl Answer<ControlAnswerResult>;
    /// `control.permit`
    fn permit(
        &self,
        caller: &Caller,
        params: ControlPermitParams,
    ) -> impl Answer<ControlPermitResult>;
    /// `control.complete`
    fn complete(
        &self,
        caller: &Caller,
        params: ControlCompleteParams,
    ) -> impl Answer<ControlCompleteResult>;
    /// `control.secret`
    fn secret(
        &self,
        caller: &Caller,
        params: ControlSecretParams,
    ) -> impl Answer<ControlSecretResult>;

    /// `desktop.launch`
    fn launch(
        &self,
        caller: &Caller,
        params: DesktopLaunchParams,
    ) -> impl Answer<DesktopLaunchResult>;
    /// `desktop.screenshot`
    fn screenshot(
        &self,
        caller: &Caller,
        params: DesktopScreenshotParams,
    ) -> impl Answer<DesktopScreenshotResult>;
    /// `desktop.click`
    fn click(&self, caller: &Caller, params: DesktopClickParams) -> impl Answer<ActionResult>;
    /// `desktop.move`
    fn move_to(&self, caller: &Caller, params: DesktopMoveParams) -> impl Answer<ActionResult>;
    /// `desktop.double_click`
    fn double_click(
        &self,
        caller: &Caller,
        params: DesktopClickParams,
    ) -> impl Answer<ActionResult>;
    /// `desktop.scroll`
    fn scroll(&self, caller: &Caller, params: DesktopScrollParams) -> impl Answer<ActionResult>;
    /// `desktop.drag`
    fn drag(&self, caller: &Caller, params: DesktopDragParams) -> impl Answer<ActionResult>;
    /// `desktop.type`
    fn type_text(&self, caller: &Caller, params: DesktopTypeParams) -> impl Answer<ActionResult>;
    /// `desktop.key`
    fn key(&self, caller: &Caller, params: DesktopKeyParams) -> impl Answer<ActionResult>;
    /// `desktop.windows`
    fn windows(
        &self,
        caller: &Caller,
        params: DesktopWindowsParams,
    ) -> impl Answer<DesktopWindowsResult>;
    /// `view.open`
    fn open_view(&self, caller: &Caller, params: ViewOpenParams) -> impl Answer<ViewOpenResult>;
    /// `cdp.open`
    fn open_cdp(&self, caller: &Caller, params: CdpOpenParams) -> impl Answer<CdpOpenResult>;
}

/// The agents of a session. What is refused is recorded by the server; what is done, by the agents.
pub trait Agents: Send + Sync + 'static {
    /// Those that have not ended, and the newest that have, oldest first.
    fn list(&self) -> Vec<AgentView>;
    /// Whether `id` is below `ancestor` in the tree.
    fn is_below(&self, id: &AgentId, ancestor: &AgentId) -> bool;
    /// An agent has acted on a desktop, looked at it or asked for a person there, and so uses it.
    fn used(&self, agent: &AgentId, desktop: &DesktopId);
    /// `spawn`, once the caller has proven itself.
    fn spawn(&self, caller: &Caller, params: SpawnParams) -> impl Answer<AgentState>;
    /// `steer`. A steer is accepted in the first poll, or not at all.
    fn steer(&self, caller: &Caller, params: SteerParams) -> impl Answer<SteerResult>;
    /// `abort`
    fn abort(&self, caller: &Caller, params: AbortParams) -> impl Answer<AbortResult>;
    /// `result`
    fn result(&self, params: ResultParams) -> impl Answer<ResultResult>;
    /// Ends every agent, for `stop_all_input`. Answers those that were ended.
    fn abort_all(&self, caller: &Caller) -> impl Future<Output = Vec<AgentState>> + Send;
}

/// The session behind the socket. It records `desktop.new` and `desktop.destroy`, done or refused.
pub trait Session: Send + Sync + 'static {
    /// Its desktops' handles.
    type Desktop: Desktop;
    /// Its agents.
    type Agents: Agents;

    /// Its name.
    fn id(&self) -> SessionId;
    /// Who sent a message on a connection that was accepted at `accepted`.
    ///
    /// # Errors
    /// `caller_refused`.
    fn identify(
        &self,
        sender: Sender,
        connection: ConnectionId,
        accepted: Moment,
    ) -> Result<Caller, Refusal>;
    /// Asks on the caller's terminal whether a person wants `act`, if there is doubt about it.
    fn confirm(&self, caller: &Caller, act: &str, wait: Duration) -> impl Answer<()>;
    /// Its desktops, oldest first.
    fn desktops(&self) -> Vec<Self::Desktop>;
    /// Its agents.
    fn agents(&self) -> &Self::Agents;
    /// `desktop.new`
    fn new_desktop(
        &self,
        caller: &Caller,
        params: DesktopNewParams,
    ) -> impl Answer<DesktopNewResult>;
    /// `desktop.destroy`
    fn destroy_desktop(
        &self,
        caller: &Caller,
        desktop: Self::Desktop,
    ) -> impl Answer<DesktopDestroyResult>;
    /// `stop`, once it is allowed: begins the end of the session and does not wait for it.
    fn stop(&self, caller: &Caller) -> impl Answer<()>;
}

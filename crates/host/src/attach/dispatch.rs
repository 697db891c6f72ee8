//! From a method and its parameters to the answer.

use std::sync::Arc;

use handover_protocol::envelope::read_params;
use handover_protocol::server::outlet::Outlet;
use handover_protocol::{
    AbortParams, AnswerParams, CdpOpenParams, ControlAcquireParams, ControlAcquireResult,
    ControlChangeParams, ControlCompleteParams, ControlPermitParams, ControlReclaimParams,
    ControlRequestParams, ControlReturnParams, ControlSecretParams, ControlStatusParams,
    DesktopClickParams, DesktopDestroyParams, DesktopDragParams, DesktopId, DesktopKeyParams,
    DesktopLaunchParams, DesktopMoveParams, DesktopScreenshotParams, DesktopScrollParams,
    DesktopTypeParams, DesktopWindowsParams, ErrorCode, HelloParams, JournalParams, JournalResult,
    LeaseName, LeaseParams, ListParams, ListResult, Method, PROTOCOL_VERSION, PingParams,
    PingResult, Refusal, RequestHumanParams, RequestStatusParams, ResultParams, SteerParams,
    StopAllInputParams, StopAllInputResult, StopParams, StopResult, SubscribeParams,
    ViewOpenParams,
};
use handover_store::Store;
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;

use super::agents;
use super::boundary::{Agents, Desktop, LIMIT, Session};
use super::greeting::Greeting;
use super::leases::Leases;
use super::outlets::Outlets;
use super::refused::Refused;
use super::subscribe::{Subscription, journal};
use crate::callers::{Caller, CallerKind};
use crate::requests::Requests;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) session: Arc<S>,
    pub(super) store: Store,
    pub(super) requests: Arc<Requests>,
    pub(super) outlets: Outlets,
    pub(super) leases: Leases,
}

/// One call: who makes it, and on which connection.
pub(super) struct Call {
    pub(super) caller: Caller,
    pub(super) method: Method,
    pub(super) params: Option<Value>,
    pub(super) greeting: Arc<Greeting>,
    pub(super) outlet: Outlet,
}

/// An answer, or a subscription that begins behind its answer. Answers that may be long are written out
/// as they are, without becoming JSON values before.
pub(super) enum Outcome {
    Answer(Value),
    List(Box<ListResult>),
    Journal(JournalResult),
    Subscribed(Value, Box<Subscription>),
}

/// Reads the parameters, finds the desktop they name and calls one of its methods, whose refusals are
/// the server's to record.
macro_rules! on_desktop {
    ($shared:expr, $call:expr, $act:ident, $params:ty) => {{
        let params: $params = read_params($call.method, $call.params.take())?;
        let desktop = $shared.find(optional(&params.desktop))?;
        let done = desktop.$act(&$call.caller, params).await?;
        $shared.used(&$call.caller, desktop.id());
        value(done)
    }};
}

/// As `on_desktop`, for acts whose refusals the desktop records itself.
macro_rules! act_on_desktop {
    ($shared:expr, $call:expr, $act:ident, $params:ty) => {{
        let params: $params = read_params($call.method, $call.params.take())?;
        let desktop = $shared.find(optional(&params.desktop))?;
        let done = desktop.$act(&$call.caller, params).await;
        let done = done.map_err(Refused::by_session)?;
        $shared.used(&$call.caller, desktop.id());
        value(done)
    }};
}

/// Does what a call asks for.
pub(super) async fn dispatch<S: Session>(
    shared: &Shared<S>,
    mut call: Call,
) -> Result<Outcome, Refused> {
    let method = call.method;
    let answer = match method {
        Method::Hello => {
            let params: HelloParams = read_params(method, call.params)?;
            value(
                call.greeting
                    .hello(shared.session.id(), call.caller, params)?,
            )
        }
        Method::Ping => {
            let PingParams {} = read_params(method, call.params)?;
            value(PingResult {
                protocol: PROTOCOL_VERSION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
        }
        Method::List => {
            let ListParams {} = read_params(method, call.params)?;
            return Ok(Outcome::List(Box::new(shared.list().await)));
        }
        Method::Spawn => value(agents::spawn(shared, &mut call).await?),
        Method::Steer => {
            let params: SteerParams = read_params(method, call.params.take())?;
            value(agents::steer(shared, &call, params).await?)
        }
        Method::Abort => {
            let params: AbortParams = read_params(method, call.params)?;
            value(shared.session.agents().abort(&call.caller, params).await?)
        }
        Method::Result => {
            let params: ResultParams = read_params(method, call.params)?;
            value(shared.session.agents().result(params).await?)
        }
        Method::Subscribe => {
            let params: SubscribeParams = read_params(method, call.params)?;
            let (subscription, result) = Subscription::new(&shared.store, params)?;
            return Ok(Outcome::Subscribed(value(result)?, Box::new(subscription)));
        }
        Method::Journal => {
            let params: JournalParams = read_params(method, call.params)?;
            return Ok(Outcome::Journal(journal(&shared.store, params).await?));
        }
        Method::ControlAcquire => {
            let params: ControlAcquireParams = read_params(method, call.params)?;
            let desktop = shared.find(optional(&params.desktop))?;
            let granted = desktop.acquire(&call.caller, params).await?;
            value(shared.granted(&desktop, granted))
        }
        Method::ControlRequest => {
            let params: ControlRequestParams = read_params(method, call.params)?;
            let desktop = shared.find(optional(&params.desktop))?;
            let granted = desktop.request(&call.caller, params).await?;
            value(shared.granted(&desktop, granted))
        }
        Method::ControlReclaim => {
            let params: ControlReclaimParams = read_params(method, call.params)?;
            let desktop = shared.find_by_lease(&params.lease_id)?;
            value(desktop.reclaim(&call.caller, params).await?)
        }
        Method::ControlRenew => {
            let params: LeaseParams = read_params(method, call.params)?;
            let desktop = shared.find_by_lease(&params.lease_id)?;
            let renewed = desktop.renew(&call.caller, params).await;
            // Of a holder who has not heard yet that a limit has ended the lease: the end is on record.
            value(renewed.map_err(|refusal| Refused {
                recorded: refusal.data.contains_key(LIMIT),
                refusal,
            })?)
        }
        Method::ControlGive => {
            let params: LeaseParams = read_params(method, call.params)?;
            let desktop = shared.find_by_lease(&params.lease_id)?;
            value(desktop.give(&call.caller, params).await?)
        }
        Method::ControlRefuse => {
            let params: LeaseParams = read_params(method, call.params)?;
            let desktop = shared.find_by_lease(&params.lease_id)?;
            value(desktop.refuse(&call.caller, params).await?)
        }
        Method::ControlReturn => {
            let params: ControlReturnParams = read_params(method, call.params)?;
            let desktop = match &params.lease_id {
                Some(lease) => shared.find_by_lease(lease)?,
                None => shared.find(optional(&params.desktop))?,
            };
            value(desktop.give_back(&call.caller, params).await?)
        }
        Method::ControlSecret => {
            let params: ControlSecretParams = read_params(method, call.params)?;
            let desktop = match &params.lease_id {
                Some(lease) if params.desktop.is_none() => shared.find_by_lease(lease)?,
                _ => shared.find(optional(&params.desktop))?,
            };
            value(desktop.secret(&call.caller, params).await?)
        }
        Method::ControlStatus => {
            let params: ControlStatusParams = read_params(method, call.params)?;
            let desktop = shared.find(optional(&params.desktop))?;
            value(desktop.status(&call.caller).await?)
        }
        Method::ControlRevoke => on_desktop!(shared, call, revoke, ControlChangeParams),
        Method::ControlPause => on_desktop!(shared, call, pause, ControlChangeParams),
        Method::ControlResume => on_desktop!(shared, call, resume, ControlChangeParams),
        Method::ControlPermit => act_on_desktop!(shared, call, permit, ControlPermitParams),
        Method::ControlComplete => on_desktop!(shared, call, complete, ControlCompleteParams),
        Method::DesktopNew => {
            let params = read_params(method, call.params)?;
            let made = shared.session.new_desktop(&call.caller, params).await;
            value(made.map_err(Refused::by_session)?)
        }
        Method::DesktopDestroy => {
            let params: DesktopDestroyParams = read_params(method, call.params)?;
            let desktop = shared.find(Some(&params.desktop))?;
            let gone = shared.session.destroy_desktop(&call.caller, desktop).await;
            let gone = gone.map_err(Refused::by_session)?;
            shared.requests.cancel(&gone.id);
            value(gone)
        }
        Method::DesktopLaunch => act_on_desktop!(shared, call, launch, DesktopLaunchParams),
        Method::DesktopScreenshot => {
            act_on_desktop!(shared, call, screenshot, DesktopScreenshotParams)
        }
        Method::DesktopClick => act_on_desktop!(shared, call, click, DesktopClickParams),
        Method::DesktopMove => act_on_desktop!(shared, call, move_to, DesktopMoveParams),
        Method::DesktopDoubleClick => {
            act_on_desktop!(shared, call, double_click, DesktopClickParams)
        }
        Method::DesktopScroll => act_on_desktop!(shared, call, scroll, DesktopScrollParams),
        Method::DesktopDrag => act_on_desktop!(shared, call, drag, DesktopDragParams),
        Method::DesktopType => act_on_desktop!(shared, call, type_text, DesktopTypeParams),
        Method::DesktopKey => act_on_desktop!(shared, call, key, DesktopKeyParams),
        Method::DesktopWindows => on_desktop!(shared, call, windows, DesktopWindowsParams),
        Method::ViewOpen => on_desktop!(shared, call, open_view, ViewOpenParams),
        Method::CdpOpen => on_desktop!(shared, call, open_cdp, CdpOpenParams),
        Method::RequestHuman => {
            let params: RequestHumanParams = read_params(method, call.params)?;
            let desktop = shared.subject(optional(&params.desktop))?;
            // Its turn may end before the answer comes, and the hand-back is for it.
            if let Some(desktop) = &desktop {
                shared.used(&call.caller, desktop);
            }
            value(shared.requests.ask(&call.caller, desktop, params).await?)
        }
        Method::RequestStatus => {
            let params: RequestStatusParams = read_params(method, call.params)?;
            tokio::select! {
                status = shared.requests.status(&call.caller, params) => value(status?),
                // Nobody is left to be told, so the wait ends.
                () = call.outlet.closed() => Ok(Value::Null),
            }
        }
        Method::Answer => {
            let params: AnswerParams = read_params(method, call.params)?;
            value(shared.requests.answer(&call.caller, params).await?)
        }
        Method::Stop => {
            let params: StopParams = read_params(method, call.params)?;
            value(shared.stop(&call.caller, params).await?)
        }
        Method::StopAllInput => {
            let StopAllInputParams {} = read_params(method, call.params)?;
            value(shared.stop_all_input(&call.caller).await?)
        }
    };
    Ok(Outcome::Answer(answer?))
}

impl<S: Session> Shared<S> {
    /// The desktop of that name, or without a name the only one.
    pub(super) fn find(&self, name: Option<&DesktopId>) -> Result<S::Desktop, Refusal> {
        let mut desktops = self.session.desktops();
        let names: Vec<DesktopId> = desktops
            .iter()
            .map(|desktop| desktop.id().clone())
            .collect();
        let place = match name {
            Some(name) => names.iter().position(|known| known == name),
            None if names.len() == 1 => Some(0),
            None => None,
        };
        if let Some(place) = place {
            return Ok(desktops.swap_remove(place));
        }
        let refusal = if names.is_empty() {
            Refusal::new(
                ErrorCode::DesktopUnknown,
                "the session has no desktop: make one with `desktop.new`",
            )
        } else if let Some(name) = name {
            Refusal::new(
                ErrorCode::DesktopUnknown,
                format!(
                    "there is no desktop {:?}; the session has {}",
                    name.as_str(),
                    listed(&names)
                ),
            )
        } else {
            Refusal::bad_param(
                "desktop",
                format!(
                    "the session has several desktops, {}: name one as `desktop`",
                    listed(&names)
                ),
            )
        };
        Err(refusal.with("desktops", names))
    }

    /// The desktop that a lease was granted on.
    fn find_by_lease(&self, lease: &LeaseName) -> Result<S::Desktop, Refusal> {
        let desktop = self.leases.desktop_of(lease);
        desktop
            .and_then(|name| self.find(Some(&name)).ok())
            .ok_or_else(|| {
                Refusal::new(
                    ErrorCode::LeaseStale,
                    "no such lease is live: acquire control again",
                )
            })
    }

    /// The desktop that a request for a person is about: the named one, the only one, or none.
    fn subject(&self, name: Option<&DesktopId>) -> Result<Option<DesktopId>, Refusal> {
        match name {
            Some(name) => Ok(Some(self.find(Some(name))?.id().clone())),
            None => Ok(self.find(None).ok().map(|desktop| desktop.id().clone())),
        }
    }

    fn granted(&self, desktop: &S::Desktop, granted: ControlAcquireResult) -> ControlAcquireResult {
        self.leases
            .granted(granted.lease_id.clone(), desktop.id().clone());
        granted
    }

    async fn list(&self) -> ListResult {
        let mut desktops = Vec::new();
        for desktop in self.session.desktops() {
            desktops.push(desktop.view().await);
        }
        ListResult {
            session: self.session.id(),
            desktops,
            agents: self.session.agents().list(),
            requests: self.requests.open_requests(None),
        }
    }

    async fn stop(&self, caller: &Caller, params: StopParams) -> Result<StopResult, Refusal> {
        if params.force != Some(true) {
            for desktop in self.session.desktops() {
                let view = desktop.view().await;
                if let Some(lease) = view.lease {
                    return Err(Refusal::new(
                        ErrorCode::HumanLeaseHeld,
                        format!(
                            "{} has control of {}: wait for the return, or say `force` (`handover down --force`)",
                            lease.holder, view.id
                        ),
                    )
                    .with("desktop", view.id)
                    .with("lease", lease));
                }
            }
        }
        self.session.stop(caller).await?;
        Ok(StopResult {
            session_id: self.session.id(),
        })
    }

    /// Notes that an agent uses a desktop.
    fn used(&self, caller: &Caller, desktop: &DesktopId) {
        if let CallerKind::Agent { id: Some(agent) } = &caller.kind {
            self.session.agents().used(agent, desktop);
        }
    }

    /// Pauses every desktop and ends every agent, all at once, so that one that is slow holds up none
    /// of the others.
    async fn stop_all_input(&self, caller: &Caller) -> Result<StopAllInputResult, Refusal> {
        let aborting = self.session.agents().abort_all(caller);
        let (paused, agents) = tokio::join!(self.pause_all(caller), aborting);
        paused?;
        Ok(StopAllInputResult {
            desktops: self.list().await.desktops,
            agents,
        })
    }

    async fn pause_all(&self, caller: &Caller) -> Result<(), Refusal> {
        let mut pauses = JoinSet::new();
        for desktop in self.session.desktops() {
            let caller = caller.clone();
            pauses.spawn(async move {
                let params = ControlChangeParams {
                    desktop: None,
                    force: Some(true),
                };
                match desktop.pause(&caller, params).await {
                    // A desktop that has ended takes no input either.
                    Err(refusal) if refusal.code != ErrorCode::DesktopGone => {
                        Err(refusal.with("desktop", desktop.id()))
                    }
                    _ => Ok(()),
                }
            });
        }
        pauses.join_all().await.into_iter().collect()
    }
}

/// Names for people. There is at least one.
fn listed(names: &[DesktopId]) -> String {
    let names: Vec<&str> = names.iter().map(DesktopId::as_str).collect();
    names.join(", ")
}

fn optional(name: &Option<DesktopId>) -> Option<&DesktopId> {
    name.as_ref()
}

fn value(result: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(result).map_err(|_| {
        Refusal::new(
            ErrorCode::Internal,
            "the answer could not be written as JSON",
        )
    })
}

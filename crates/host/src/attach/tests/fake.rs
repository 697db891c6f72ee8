//! A session without displays.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use handover_control::Moment;
use handover_protocol::*;
use tokio::sync::Semaphore;

use crate::attach::boundary::{Agents, Desktop, Session};
use crate::callers::{Caller, CallerKind, ConnectionId, Evidence};
use crate::system::creds::Sender;

pub struct FakeSession {
    pub desktops: Mutex<Vec<FakeDesktop>>,
    /// What every sender is taken for.
    pub kind: Mutex<CallerKind>,
    pub marked: Mutex<Option<String>>,
    /// Whether the person says yes.
    pub confirms: AtomicBool,
    pub asked: AtomicUsize,
    /// The person takes their time: questions are not answered.
    pub hesitates: AtomicBool,
    /// Questions that stand on a terminal.
    pub standing: Arc<AtomicUsize>,
    pub stopped: AtomicBool,
    pub agents: FakeAgents,
}

/// A question on a terminal, as long as it stands there.
struct Standing(Arc<AtomicUsize>);

impl Standing {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub const PERSON: CallerKind = CallerKind::Human {
    evidence: Evidence::Lineage,
};

impl FakeSession {
    pub fn new() -> Self {
        Self {
            desktops: Mutex::new(vec![FakeDesktop::new("d1")]),
            kind: Mutex::new(PERSON),
            marked: Mutex::new(None),
            confirms: AtomicBool::new(true),
            asked: AtomicUsize::new(0),
            hesitates: AtomicBool::new(false),
            standing: Arc::default(),
            stopped: AtomicBool::new(false),
            agents: FakeAgents::default(),
        }
    }

    pub fn become_kind(&self, kind: CallerKind) {
        *self.kind.lock().unwrap() = kind;
    }

    pub fn desktop(&self) -> FakeDesktop {
        self.desktops.lock().unwrap()[0].clone()
    }
}

impl Session for FakeSession {
    type Desktop = FakeDesktop;
    type Agents = FakeAgents;

    fn id(&self) -> SessionId {
        "s1".into()
    }

    fn identify(
        &self,
        sender: Sender,
        connection: ConnectionId,
        _: Moment,
    ) -> Result<Caller, Refusal> {
        Ok(Caller {
            kind: self.kind.lock().unwrap().clone(),
            uid: sender.uid,
            pid: sender.pid,
            start_ticks: 1,
            via: String::new(),
            connection,
            marked: self.marked.lock().unwrap().clone(),
        })
    }

    async fn confirm(&self, _: &Caller, act: &str, _: Duration) -> Result<(), Refusal> {
        assert!(!act.is_empty());
        let _standing = Standing::new(&self.standing);
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hesitates.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.confirms.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(Refusal::new(ErrorCode::CallerRefused, "nobody said yes"))
        }
    }

    fn desktops(&self) -> Vec<FakeDesktop> {
        self.desktops.lock().unwrap().clone()
    }

    fn agents(&self) -> &FakeAgents {
        &self.agents
    }

    async fn new_desktop(
        &self,
        _: &Caller,
        _: DesktopNewParams,
    ) -> Result<DesktopNewResult, Refusal> {
        let mut desktops = self.desktops.lock().unwrap();
        let id = format!("d{}", desktops.len() + 1);
        desktops.push(FakeDesktop::new(&id));
        Ok(DesktopNewResult {
            id: id.into(),
            size: Size::default(),
        })
    }

    async fn destroy_desktop(
        &self,
        _: &Caller,
        desktop: FakeDesktop,
    ) -> Result<DesktopDestroyResult, Refusal> {
        self.desktops
            .lock()
            .unwrap()
            .retain(|known| known.id != desktop.id);
        Ok(DesktopDestroyResult { id: desktop.id })
    }

    async fn stop(&self, _: &Caller) -> Result<(), Refusal> {
        self.stopped.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Two agents, `parent` and `child` below it, to which nothing happens but what is noted.
#[derive(Default)]
pub struct FakeAgents {
    /// The calls and who made them.
    pub called: Mutex<Vec<(&'static str, Caller)>>,
    /// Which agent used which desktop.
    pub used: Mutex<Vec<(AgentId, DesktopId)>>,
}

impl FakeAgents {
    fn note(&self, what: &'static str, caller: &Caller) {
        self.called.lock().unwrap().push((what, caller.clone()));
    }

    /// What was called since the last look.
    pub fn calls(&self) -> Vec<&'static str> {
        let called = std::mem::take(&mut *self.called.lock().unwrap());
        called.into_iter().map(|(what, _)| what).collect()
    }

    fn find(id: &AgentId) -> Result<(), Refusal> {
        if ["parent", "child"].contains(&id.as_str()) {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::AgentUnknown,
            "there is no such agent",
        ))
    }
}

impl Agents for FakeAgents {
    fn list(&self) -> Vec<AgentView> {
        Vec::new()
    }

    fn is_below(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        (id.as_str(), ancestor.as_str()) == ("child", "parent")
    }

    fn used(&self, agent: &AgentId, desktop: &DesktopId) {
        let used = (agent.clone(), desktop.clone());
        self.used.lock().unwrap().push(used);
    }

    async fn spawn(&self, caller: &Caller, _: SpawnParams) -> Result<AgentState, Refusal> {
        self.note("spawn", caller);
        Ok(AgentState {
            id: "child".into(),
            status: AgentStatus::Queued,
        })
    }

    async fn steer(&self, caller: &Caller, params: SteerParams) -> Result<SteerResult, Refusal> {
        Self::find(&params.id)?;
        self.note("steer", caller);
        if params.wait.is_some() {
            // The state that is waited for never comes.
            std::future::pending::<()>().await;
        }
        Ok(SteerResult {
            steer_id: params.steer_id.unwrap_or_else(|| "st-1".into()),
            state: SteerState::Accepted,
            reason: None,
        })
    }

    async fn abort(&self, caller: &Caller, params: AbortParams) -> Result<AbortResult, Refusal> {
        Self::find(&params.id)?;
        self.note("abort", caller);
        Ok(AbortResult {
            id: params.id,
            status: AgentStatus::Aborted,
            descendants: Vec::new(),
            survivors: Vec::new(),
        })
    }

    async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        Self::find(&params.id)?;
        Ok(ResultResult {
            id: params.id,
            status: AgentStatus::Done,
            text: "all done".into(),
            error: None,
            finished_at: None,
        })
    }

    async fn abort_all(&self, caller: &Caller) -> Vec<AgentState> {
        self.note("abort_all", caller);
        vec![AgentState {
            id: "parent".into(),
            status: AgentStatus::Aborted,
        }]
    }
}

#[derive(Clone)]
pub struct FakeDesktop {
    id: DesktopId,
    /// What was called, with its arguments.
    pub log: Arc<Mutex<Vec<String>>>,
    pub closed: Arc<Mutex<Vec<ConnectionId>>>,
    pub lease: Arc<Mutex<Option<LeaseView>>>,
    /// A launch waits for a permit of this.
    pub slow: Arc<Semaphore>,
}

impl FakeDesktop {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            log: Arc::default(),
            closed: Arc::default(),
            lease: Arc::default(),
            slow: Arc::new(Semaphore::new(0)),
        }
    }

    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }

    fn acted(&self, what: impl Into<String>) -> Result<ActionResult, Refusal> {
        self.note(what);
        Ok(ActionResult {
            epoch: 1,
            hand_back: None,
        })
    }

    fn control(&self) -> ControlStatusResult {
        ControlStatusResult {
            desktop: self.id.clone(),
            control: Control::Agent,
            phase: Phase::Steady,
            epoch: 1,
            lease: self.lease.lock().unwrap().clone(),
            pause_reason: None,
            last_hand_back: None,
            requests: Vec::new(),
        }
    }

    fn granted(&self) -> Result<ControlAcquireResult, Refusal> {
        Ok(ControlAcquireResult {
            lease_id: format!("l-{}", self.id).into(),
            token: "secret".into(),
            epoch: 2,
            ttl_ms: 30_000,
            heartbeat_ms: 5000,
            expires_in_ms: 30_000,
            foreign_clients: Vec::new(),
        })
    }
}

impl Desktop for FakeDesktop {
    fn id(&self) -> &DesktopId {
        &self.id
    }
    async fn view(&self) -> DesktopView {
        DesktopView {
            id: self.id.clone(),
            size: Size::default(),
            control: Control::Agent,
            phase: Phase::Steady,
            epoch: 1,
            lease: self.lease.lock().unwrap().clone(),
        }
    }
    fn connection_closed(&self, connection: ConnectionId) {
        self.closed.lock().unwrap().push(connection);
    }
    async fn acquire(
        &self,
        _: &Caller,
        _: ControlAcquireParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        self.granted()
    }
    async fn renew(&self, _: &Caller, params: LeaseParams) -> Result<ControlRenewResult, Refusal> {
        self.note(format!("renew {}", params.lease_id));
        Ok(ControlRenewResult {
            expires_in_ms: 30_000,
            epoch: 2,
        })
    }
    async fn reclaim(
        &self,
        _: &Caller,
        _: ControlReclaimParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        self.granted()
    }
    async fn give_back(
        &self,
        _: &Caller,
        _: ControlReturnParams,
    ) -> Result<ControlReturnResult, Refusal> {
        self.note("return");
        Err(Refusal::new(ErrorCode::LeaseStale, "nobody is in control"))
    }
    async fn status(&self, _: &Caller) -> Result<ControlStatusResult, Refusal> {
        Ok(self.control())
    }
    async fn revoke(
        &self,
        _: &Caller,
        _: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        Ok(self.control())
    }
    async fn pause(
        &self,
        _: &Caller,
        params: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        self.note(format!("pause {:?}", params.force));
        Ok(self.control())
    }
    async fn resume(
        &self,
        _: &Caller,
        _: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        Ok(self.control())
    }
    async fn request(
        &self,
        _: &Caller,
        _: ControlRequestParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        self.granted()
    }
    async fn give(&self, _: &Caller, _: LeaseParams) -> Result<ControlAnswerResult, Refusal> {
        Ok(self.control())
    }
    async fn refuse(&self, _: &Caller, _: LeaseParams) -> Result<ControlAnswerResult, Refusal> {
        Ok(self.control())
    }
    async fn permit(
        &self,
        _: &Caller,
        _: ControlPermitParams,
    ) -> Result<ControlPermitResult, Refusal> {
        Ok(ControlPermitResult {
            permit: "p1".into(),
            epoch: 1,
        })
    }
    async fn complete(
        &self,
        _: &Caller,
        _: ControlCompleteParams,
    ) -> Result<ControlCompleteResult, Refusal> {
        Ok(ControlCompleteResult {})
    }
    async fn secret(
        &self,
        _: &Caller,
        _: ControlSecretParams,
    ) -> Result<ControlSecretResult, Refusal> {
        Ok(ControlSecretResult { epoch: 2 })
    }
    async fn launch(
        &self,
        _: &Caller,
        _: DesktopLaunchParams,
    ) -> Result<DesktopLaunchResult, Refusal> {
        self.slow.acquire().await.unwrap().forget();
        Ok(DesktopLaunchResult {
            pid: 1,
            log: "log".into(),
            epoch: 1,
            hand_back: None,
        })
    }
    async fn screenshot(
        &self,
        _: &Caller,
        _: DesktopScreenshotParams,
    ) -> Result<DesktopScreenshotResult, Refusal> {
        // More than a socket holds, so that a client that does not read blocks its writer.
        Ok(DesktopScreenshotResult {
            path: None,
            width: 1,
            height: 1,
            sha256: String::new(),
            epoch: 1,
            png: Some("A".repeat(512 << 10)),
            hand_back: None,
        })
    }
    async fn click(&self, _: &Caller, params: DesktopClickParams) -> Result<ActionResult, Refusal> {
        self.acted(format!("click {}", params.x))
    }
    async fn move_to(&self, _: &Caller, _: DesktopMoveParams) -> Result<ActionResult, Refusal> {
        panic!("a fault of the host, which must not cost the connection")
    }
    async fn double_click(
        &self,
        _: &Caller,
        _: DesktopClickParams,
    ) -> Result<ActionResult, Refusal> {
        self.acted("double_click")
    }
    async fn scroll(&self, _: &Caller, _: DesktopScrollParams) -> Result<ActionResult, Refusal> {
        self.acted("scroll")
    }
    async fn drag(&self, _: &Caller, _: DesktopDragParams) -> Result<ActionResult, Refusal> {
        self.acted("drag")
    }
    async fn type_text(
        &self,
        _: &Caller,
        params: DesktopTypeParams,
    ) -> Result<ActionResult, Refusal> {
        self.acted(format!("type {}", params.text.expose()))
    }
    async fn key(&self, _: &Caller, params: DesktopKeyParams) -> Result<ActionResult, Refusal> {
        self.acted(format!("key {}", params.keys))
    }
    async fn windows(
        &self,
        _: &Caller,
        _: DesktopWindowsParams,
    ) -> Result<DesktopWindowsResult, Refusal> {
        Ok(DesktopWindowsResult {
            windows: Vec::new(),
        })
    }
    async fn open_view(&self, _: &Caller, _: ViewOpenParams) -> Result<ViewOpenResult, Refusal> {
        Ok(ViewOpenResult {
            viewer: "v1".into(),
            socket_path: "/nowhere".into(),
        })
    }
    async fn open_cdp(&self, _: &Caller, _: CdpOpenParams) -> Result<CdpOpenResult, Refusal> {
        Ok(CdpOpenResult {
            socket_path: "/nowhere".into(),
        })
    }
}

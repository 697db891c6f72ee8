//! A desktop for the rest of the host: each method of the wire as one call.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use handover_control::{PauseReason, PermitId};
use handover_protocol::{
    ActionResult, ControlAcquireParams, ControlAcquireResult, ControlPermitParams,
    ControlStatusResult, DesktopId, DesktopLaunchParams, DesktopLaunchResult, ErrorCode,
    LeaseParams, Refusal, Size, ViewerName,
};
use serde_json::Map;
use tokio::sync::{MutexGuard, mpsc, watch};
use tokio::task::JoinSet;

use super::acting::{HOST, Queued};
use super::action::{self, Action, Bounds};
use super::by::By;
use super::command::{Answer, Ask, Command, LeaseProof};
use super::links::Links;
use super::owners::{self, Holder};
use super::permits::Permits;
use super::programs::Programs;
use super::requests::reply;
use super::terms;
use super::view::ControlView;
use crate::browser::{AdmitClient, Browser, BrowserCommand};
use crate::callers::Caller;
use crate::display::Managed;
use crate::system::process::ProcessIdentity;
use crate::viewer::Viewers;

/// How long a window manager may take to begin. It gives new windows the keyboard, those from before it began never;
/// on two slow cores it takes seconds.
const MANAGED_WITHIN: Duration = Duration::from_secs(20);

/// How long for one that keeps no list of its windows, or whose program has ended, to begin.
const UNLISTED_WITHIN: Duration = Duration::from_secs(2);

/// How often a window manager that has not begun is looked for.
const MANAGED_AGAIN: Duration = Duration::from_millis(5);

/// The longest word that says what a permit is for, in bytes.
const MAX_WHAT: usize = 256;

/// What a handle is made of.
pub(super) struct Inner {
    pub(super) id: DesktopId,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) view: watch::Receiver<ControlView>,
    pub(super) links: Arc<Links>,
    pub(super) viewers: Viewers,
    /// Numbers viewers through the whole session.
    pub(super) viewer_numbers: Arc<AtomicU64>,
    /// Where a viewer's socket is.
    pub(super) viewer_socket: Box<dyn Fn(&ViewerName) -> PathBuf + Send + Sync>,
    pub(super) programs: Option<Programs>,
    /// The browser, once it is started.
    pub(super) browser: OnceLock<Browser>,
    /// The size as last heard.
    pub(super) last_size: std::sync::Mutex<Size>,
    /// Held by one action from its arrival until it is queued: what some have to ask the display
    /// first must not let later ones overtake them.
    pub(super) arrivals: tokio::sync::Mutex<()>,
}

/// A desktop. Clones are the same desktop.
#[derive(Clone)]
pub struct DesktopHandle(pub(super) Arc<Inner>);

impl std::fmt::Debug for DesktopHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DesktopHandle").field(&self.0.id).finish()
    }
}

impl DesktopHandle {
    fn gone(&self) -> Refusal {
        Refusal::new(
            ErrorCode::DesktopGone,
            format!("desktop {} has ended; make a new one", self.0.id),
        )
    }

    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(Answer<T>) -> Command,
    ) -> Result<T, Refusal> {
        let (answer, answered) = reply();
        self.0
            .commands
            .send(command(answer))
            .await
            .map_err(|_| self.gone())?;
        answered.await.map_err(|_| self.gone())?
    }

    /// Tells the desktop something that needs no answer.
    pub(super) async fn tell(&self, command: Command) {
        // A desktop that has ended needs to know nothing.
        let _ = self.0.commands.send(command).await;
    }

    pub(super) fn bounds(&self) -> Bounds {
        let size = self.size();
        Bounds {
            width: size.width,
            height: size.height,
        }
    }

    /// The size of its framebuffer, as last heard.
    pub fn size(&self) -> Size {
        let mut last = self
            .0
            .last_size
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((width, height)) = self.0.links.screen.known_size() {
            *last = Size { width, height };
        }
        *last
    }

    /// Waits for the actions that arrived earlier to be queued.
    pub(super) async fn place(&self) -> MutexGuard<'_, ()> {
        self.0.arrivals.lock().await
    }

    /// Queues an action in its place and waits for it.
    pub(super) async fn act(
        &self,
        caller: &Caller,
        action: Action,
        place: MutexGuard<'_, ()>,
    ) -> Result<ActionResult, Refusal> {
        let by = By::from(caller);
        let observer = by.observer.clone();
        let (reply, done) = reply();
        let command = Command::Act(Queued { by, action, reply });
        let queued = self.0.commands.send(command).await;
        drop(place);
        queued.map_err(|_| self.gone())?;
        let epoch = done.await.map_err(|_| self.gone())??;
        Ok(ActionResult {
            epoch,
            hand_back: self.untold(observer).await,
        })
    }

    /// The action, or its refusal on record with what is `said` of it.
    pub(super) async fn checked(
        &self,
        caller: &Caller,
        kind: &'static str,
        said: serde_json::Value,
        action: Result<Action, Refusal>,
    ) -> Result<Action, Refusal> {
        if let Err(refusal) = &action {
            let mut said = action::fields(said);
            said.retain(|_, value| !value.is_null());
            self.record(caller, kind, "refused", Some(refusal), said)
                .await;
        }
        action
    }

    pub(super) async fn record(
        &self,
        caller: &Caller,
        kind: &'static str,
        outcome: &str,
        refusal: Option<&Refusal>,
        mut fields: Map<String, serde_json::Value>,
    ) {
        fields.insert("outcome".into(), outcome.into());
        if let Some(refusal) = refusal {
            fields.insert("code".into(), refusal.code.as_str().into());
        }
        self.tell(Command::Record {
            kind,
            by: By::from(caller),
            fields,
        })
        .await;
    }

    pub(super) async fn untold(&self, observer: String) -> Option<handover_protocol::HandBack> {
        let (reply, answered) = tokio::sync::oneshot::channel();
        self.tell(Command::Tell { observer, reply }).await;
        answered.await.ok().flatten()
    }

    /// A permit for something that the caller does by itself.
    pub(super) async fn outside_permit(
        &self,
        caller: &Caller,
        params: ControlPermitParams,
    ) -> Result<(PermitId, handover_control::Epoch), Refusal> {
        if params.what.is_empty() || params.what.len() > MAX_WHAT {
            return Err(Refusal::bad_param(
                "what",
                format!("`what` is to say in up to {MAX_WHAT} bytes what will be done"),
            ));
        }
        let process = ProcessIdentity {
            pid: caller.pid,
            start_ticks: caller.start_ticks,
        };
        let holder = match params.keeper {
            None => Holder::Process(process),
            Some(keeper) => Holder::below(keeper, process)?,
        };
        if let Some(keeper) = holder.keeper() {
            self.0.links.relayed.keep(keeper, process).await?;
        }
        let by = By::from(caller);
        let owner = holder.owner(caller.connection);
        let watching = owners::watch(holder, owner, self.0.commands.downgrade());
        self.ask(|reply| Command::Permit {
            by,
            owner,
            keeper: holder.keeper(),
            watching,
            what: params.what,
            reply,
        })
        .await
    }

    async fn host_permit(
        &self,
        caller: &Caller,
        what: &str,
    ) -> Result<(PermitId, handover_control::Epoch), Refusal> {
        let by = By::from(caller);
        let what = what.to_owned();
        self.ask(|reply| Command::Permit {
            by,
            owner: HOST,
            keeper: None,
            watching: JoinSet::new(),
            what,
            reply,
        })
        .await
    }

    async fn host_complete(&self, permit: PermitId) {
        let done = self.ask(|reply| Command::Complete {
            permit,
            by: None,
            reply,
        });
        // A desktop that has ended holds no permit.
        let _ = done.await;
    }

    pub(super) async fn acquiring(
        &self,
        caller: &Caller,
        params: ControlAcquireParams,
        of_holder: bool,
    ) -> Result<ControlAcquireResult, Refusal> {
        let by = By::from(caller);
        let (lease, token) = terms::new_lease()?;
        let terms = terms::terms(&params, by.connection, lease, terms::hash(&token))?;
        self.0.links.relayed.ended(terms.drain).await?;
        self.ask(|reply| {
            Command::Acquire(Ask {
                by,
                terms,
                token,
                note: params.note,
                of_holder,
                reply,
            })
        })
        .await
    }

    pub(super) fn proof(params: &LeaseParams) -> Result<LeaseProof, Refusal> {
        terms::proof(&params.lease_id, &params.token)
    }

    pub(super) async fn answer_request(
        &self,
        params: LeaseParams,
        give: bool,
    ) -> Result<ControlStatusResult, Refusal> {
        let lease = Self::proof(&params)?;
        self.ask(|reply| Command::AnswerRequest { lease, give, reply })
            .await
    }

    /// Lets nobody act, for a reason of the host's own.
    ///
    /// # Errors
    /// `desktop_gone`.
    pub async fn pause_for(&self, reason: PauseReason) -> Result<ControlStatusResult, Refusal> {
        self.ask(|reply| Command::Pause {
            by: None,
            reason,
            reply,
        })
        .await
    }

    /// The display's process has ended.
    pub async fn server_gone(&self) {
        self.tell(Command::ServerGone).await;
    }

    /// Takes control away from whoever has it, for the end of the session.
    pub async fn revoke_for_end(&self, caller: Option<&Caller>) {
        let by = caller.map(By::from);
        let revoked = self.ask(|reply| Command::Revoke {
            by,
            force: true,
            reply,
        });
        // A desktop that has ended is controlled by nobody.
        let _ = revoked.await;
    }

    /// Ends the desktop's task; its viewers end with it.
    pub async fn close(&self) {
        let (done, ended) = tokio::sync::oneshot::channel();
        self.tell(Command::Close(done)).await;
        // Already ended is ended.
        let _ = ended.await;
    }

    /// Ends what runs on the display.
    pub(crate) fn programs(&self) -> Option<&Programs> {
        self.0.programs.as_ref()
    }

    /// A permit for the end of the desktop, which passes the gate like input.
    ///
    /// # Errors
    /// As for every act.
    pub async fn permit_to_end(&self, caller: &Caller) -> Result<(), Refusal> {
        // The permit ends with the desktop's task; a takeover that begins in
        // between waits for it and is told that the desktop is gone.
        self.host_permit(caller, "desktop.destroy").await.map(drop)
    }

    /// Who has control, as it changes.
    pub fn control(&self) -> watch::Receiver<ControlView> {
        self.0.view.clone()
    }

    /// Starts a program for the host itself, such as the window manager; none on a desktop that is attached to
    /// another server.
    ///
    /// # Errors
    /// As for `desktop.launch`.
    pub async fn launch_as_host(
        &self,
        params: &DesktopLaunchParams,
    ) -> Result<Option<ProcessIdentity>, Refusal> {
        let Some(programs) = &self.0.programs else {
            return Ok(None);
        };
        let launch = programs.prepare(params, None).await?;
        let (pid, _log) = programs.launch(launch).await?;
        // It may have ended already.
        Ok(ProcessIdentity::of(pid).ok())
    }

    /// Starts the desktop's browser.
    ///
    /// # Errors
    /// `display_unavailable` if it does not come up, `bad_params` on a desktop that is attached to another
    /// server.
    pub(crate) async fn start_browser(
        &self,
        command: &BrowserCommand,
        admit: Arc<AdmitClient>,
    ) -> Result<(), Refusal> {
        let Some(programs) = &self.0.programs else {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                "a desktop that is attached to another server has no browser of its own; leave one of `attach` and `browser` out",
            ));
        };
        let permits = Permits {
            desktop: self.0.id.clone(),
            commands: self.0.commands.downgrade(),
            view: self.0.view.clone(),
        };
        let browser = Browser::start(programs, permits, command, self.size(), admit).await?;
        // A desktop is given one browser, when it is made.
        let _ = self.0.browser.set(browser);
        Ok(())
    }

    /// `cdp.open`.
    ///
    /// # Errors
    /// `bad_params` if the desktop has no browser, and as for [`Browser::open`].
    pub(super) fn opened_cdp(&self) -> Result<PathBuf, Refusal> {
        let Some(browser) = self.0.browser.get() else {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                format!(
                    "desktop {} has no browser, or it ended with its former host; make another with `handover desktop new --browser`",
                    self.0.id
                ),
            ));
        };
        browser.open()
    }

    /// Waits until the window manager, which is that program, looks after the windows; whether it does.
    pub async fn managed(&self, manager: Option<ProcessIdentity>) -> bool {
        let Some(x11) = &self.0.links.x11 else {
            return false;
        };
        let started = Instant::now();
        loop {
            let managed = x11.managed().await.unwrap_or_default();
            let took = started.elapsed();
            match managed {
                Managed::Listed => return true,
                Managed::Redirected if took >= UNLISTED_WITHIN => return true,
                Managed::Redirected | Managed::Not => {}
            }
            let runs = manager.is_some_and(|manager| manager.is_alive());
            let bound = if runs {
                MANAGED_WITHIN
            } else {
                UNLISTED_WITHIN
            };
            if took >= bound {
                return false;
            }
            tokio::time::sleep(MANAGED_AGAIN).await;
        }
    }

    /// Whether agents may act now.
    ///
    /// # Errors
    /// What an act would be refused with.
    pub async fn agents_may_act(&self) -> Result<(), Refusal> {
        self.ask(Command::MayAct).await
    }

    /// `desktop.launch`, not on record yet.
    pub(super) async fn launched(
        &self,
        caller: &Caller,
        params: DesktopLaunchParams,
    ) -> Result<DesktopLaunchResult, Refusal> {
        let Some(programs) = &self.0.programs else {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                format!(
                    "desktop {} is attached to another server; start programs on that server's own machine or display",
                    self.0.id
                ),
            ));
        };
        let launch = programs.prepare(&params, self.0.links.x11.as_ref()).await?;
        let (permit, epoch) = self.host_permit(caller, "desktop.launch").await?;
        let launched = programs.launch(launch).await;
        self.host_complete(permit).await;
        let (pid, log) = launched?;
        let by = By::from(caller);
        Ok(DesktopLaunchResult {
            pid,
            log,
            epoch: epoch.0,
            hand_back: self.untold(by.observer).await,
        })
    }
}

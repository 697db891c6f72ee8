//! New desktops.

use std::time::Duration;

use handover_control::Epoch;
use handover_protocol::{
    BrowserStart, DesktopId, DesktopLaunchParams, DesktopNewParams, DesktopNewResult, ErrorCode,
    Refusal, Size,
};

use super::assemble::{Running, unavailable};
use super::stored::{self, Row};
use super::{DesktopSet, attached};
use crate::attach::Desktop;
use crate::callers::{Caller, CallerKind};
use crate::desktop::{Beginning, DesktopHandle};
use crate::keeper::Owner;
use crate::keeper::client::{Keeper, KeeperOptions, KeeperProgram};
use crate::record::not_recorded;
use crate::xvnc::{self, DesktopFiles, WindowManager, XvncOptions};

/// How long a display may take to come up. Ten at once on two slow cores take
/// seconds each.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Updates a second that a display sends to each viewer at most.
const FRAME_RATE: u32 = 60;

/// Time between TERM and KILL for a display that did not come up.
const END_GRACE: Duration = Duration::from_millis(200);

impl DesktopSet {
    /// Makes a desktop, if the caller may.
    ///
    /// # Errors
    /// `human_control_active` for an agent while a person controls a desktop of
    /// the session, `queue_full`, `storage_failed`, `bad_params` for a window
    /// manager or target that there is not, `display_unavailable`.
    pub async fn new_desktop(
        &self,
        caller: &Caller,
        params: DesktopNewParams,
    ) -> Result<DesktopNewResult, Refusal> {
        if !matches!(caller.kind, CallerKind::Human { .. }) {
            self.agents_may_act().await?;
        }
        let browser = params.browser.as_ref().and_then(BrowserStart::address);
        if browser.is_some() && params.attach.is_some() {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                "a desktop that is attached to another server has no browser of its own; leave one of `attach` and `browser` out",
            ));
        }
        let browser = browser.map(crate::browser::command).transpose()?;
        let window_manager = WindowManager::from_option(params.wm.as_deref());
        let window_manager = window_manager
            .command()
            .map_err(|error| Refusal::bad_param("wm", error.to_string()))?;
        let place = self.place()?;
        // The highest so far, should two be made at once.
        stored::keep_last_number(&self.shared.store, self.places.last())
            .await
            .map_err(|error| not_recorded(&error))?;
        let id = stored::name(place.number);
        let handle = match params.attach.as_deref() {
            Some(target) => self.attach(&id, target, attached::fresh()).await?,
            None => self.spawn(&id, params.size.unwrap_or_default()).await?,
        };
        if params.attach.is_none()
            && let Some(command) = window_manager
        {
            let launch = DesktopLaunchParams {
                desktop: None,
                command,
                cwd: None,
                env: None,
                untrusted: None,
            };
            match handle.launch_as_host(&launch).await {
                Ok(manager) => {
                    if !handle.managed(manager).await {
                        tracing::warn!(desktop = %id, "the window manager has not begun");
                    }
                }
                Err(refusal) => tracing::warn!(desktop = %id, %refusal, "no window manager"),
            }
        }
        if let Some(command) = &browser {
            let admit = self.shared.admit_to_browser.clone();
            if let Err(refusal) = handle.start_browser(command, admit).await {
                self.end(&handle).await;
                return Err(refusal);
            }
        }
        Ok(DesktopNewResult {
            size: handle.size(),
            id,
        })
    }

    /// An agent's desktop is made only while agents may act at all.
    async fn agents_may_act(&self) -> Result<(), Refusal> {
        for desktop in self.all() {
            desktop.agents_may_act().await?;
        }
        Ok(())
    }

    /// Starts a display of the host's own.
    async fn spawn(&self, id: &DesktopId, size: Size) -> Result<DesktopHandle, Refusal> {
        let store = &self.shared.store;
        stored::keep(store, id, &Row::Starting)
            .await
            .map_err(|error| not_recorded(&error))?;
        let spawned = self.spawned(id, size).await;
        if spawned.is_err() {
            stored::forget(store, id).await;
        }
        spawned
    }

    async fn spawned(&self, id: &DesktopId, size: Size) -> Result<DesktopHandle, Refusal> {
        let shared = &self.shared;
        let files = DesktopFiles::new(&shared.paths, id);
        let options = KeeperOptions {
            session: shared.session.clone(),
            owner: Owner::Desktop(id.to_string()),
            socket: files.keeper_socket.clone(),
            log: files.keeper_log.clone(),
            orphan_timeout: shared.orphan_timeout,
        };
        let (keeper, events) = Keeper::start(&KeeperProgram::own(), &options)
            .await
            .map_err(|error| unavailable(id, error))?;
        let options = XvncOptions {
            width: size.width,
            height: size.height,
            frame_rate: FRAME_RATE,
            title: id.to_string(),
            deadline: READY_WITHIN,
        };
        let started = match xvnc::start(&keeper, &files, &options).await {
            Ok(started) => started,
            Err(error) => {
                keeper.end(END_GRACE).await;
                let _ = xvnc::clean_up(&files, None);
                return Err(unavailable(id, error));
            }
        };
        let stored_display = started.stored.clone();
        let row = Row::Running {
            display: stored_display.clone(),
        };
        let running = Running {
            id: id.clone(),
            keeper: keeper.clone(),
            events,
            files: files.clone(),
            started,
        };
        let assembled = async {
            stored::keep(&shared.store, id, &row)
                .await
                .map_err(|error| not_recorded(&error))?;
            self.assemble(running, Beginning::new(Epoch::default()))
                .await
        };
        match assembled.await {
            Ok(handle) => Ok(handle),
            Err(refusal) => {
                keeper.end(END_GRACE).await;
                let _ = xvnc::clean_up(&files, Some(&stored_display));
                Err(refusal)
            }
        }
    }

    /// The desktop of this name, if there is one.
    pub fn get(&self, id: &DesktopId) -> Option<DesktopHandle> {
        self.all().into_iter().find(|desktop| desktop.id() == id)
    }
}

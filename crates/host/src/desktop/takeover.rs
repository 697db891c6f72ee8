//! Takeovers as people see them: who asks, who holds, who waits for the end.

use std::collections::HashMap;
use std::time::Duration;

use handover_control::{Control, LeaseId, Phase, Status, TimeoutCause, TokenHash};
use handover_protocol::{
    ControlAcquireResult, ControlReturnResult, ControlStatusResult, ForeignClient, Hidden,
    LeaseView, Refusal, ViewerName, Window,
};
use tokio::task::JoinHandle;

use super::actor::Actor;
use super::by::By;
use super::command::{Answer, LeaseProof};
use super::refuse;
use crate::attach::LIMIT;
use crate::display::x11::Locks;
use crate::system::clock;

/// How often a lease should be renewed: six times within its TTL, at the most
/// every five seconds.
const HEARTBEATS_PER_TTL: u32 = 6;
const HEARTBEAT_MOST: Duration = Duration::from_secs(5);

/// What was seen of the display when control was asked for.
#[derive(Debug, Default)]
pub struct Survey {
    /// Programs that can watch.
    pub foreign_clients: Vec<ForeignClient>,
    /// The windows, if they could be read.
    pub windows: Option<Vec<Window>>,
    /// The lock keys; off, as a display begins, if they could not be read.
    pub locks: Locks,
}

/// A person who asks for control.
#[derive(Debug)]
pub struct Asker {
    pub(super) by: By,
    pub(super) note: Option<String>,
    pub(super) ttl: Duration,
    pub(super) token: Hidden,
    pub(super) reply: Answer<ControlAcquireResult>,
    pub(super) survey: JoinHandle<Survey>,
    /// The lease whose holder was told of it and has not been told yet that it is over.
    pub(super) asks: Option<LeaseId>,
}

/// The person in control.
#[derive(Debug)]
pub struct Holder {
    pub(super) lease: LeaseId,
    pub(super) by: By,
    pub(super) ttl: Duration,
    /// What the person leaves for the agents: the note of the return, else that of the beginning, since
    /// a viewer that is closed or a time that is over says nothing more.
    pub(super) note: Option<String>,
    /// The windows when control was granted; none until they are read, and if they cannot be. Then nothing is said of
    /// those that were opened or closed since.
    pub(super) windows: Option<Vec<Window>>,
    /// The lock keys when control was granted, as they will be again.
    pub(super) locks: Locks,
    /// Who ended the takeover, if somebody did.
    pub(super) ended_by: Option<By>,
    /// What proves that somebody is this person.
    pub(super) token: TokenHash,
}

/// The people around one desktop's takeovers.
#[derive(Debug, Default)]
pub struct Takeovers {
    pub(super) askers: HashMap<LeaseId, Asker>,
    pub(super) holder: Option<Holder>,
    /// The last lease that ended because a time was over, and which.
    pub(super) timed_out: Option<(LeaseId, TokenHash, TimeoutCause)>,
    /// Wait for the end of the present takeover.
    pub(super) returners: Vec<Answer<ControlReturnResult>>,
    /// Wait until control is not moving.
    pub(super) settlers: Vec<Answer<ControlStatusResult>>,
    /// Pauses and ends of pauses on their way into the record.
    pub(super) recording: usize,
    /// Who asked for the present pause or resume.
    pub(super) changed_by: Option<By>,
}

impl Takeovers {
    /// How often a lease with this TTL should be renewed.
    pub fn heartbeat(ttl: Duration) -> Duration {
        (ttl / HEARTBEATS_PER_TTL).min(HEARTBEAT_MOST)
    }

    /// The lease in the way, as others may know it.
    pub fn lease_view(&self, status: &Status) -> Option<LeaseView> {
        let lease = status.lease?;
        let holder = self
            .holder
            .as_ref()
            .filter(|holder| holder.lease == lease.lease)
            .map(|holder| &holder.by)
            .or_else(|| self.askers.get(&lease.lease).map(|asker| &asker.by));
        let since = clock::now().since(lease.since);
        Some(LeaseView {
            lease_id: lease.lease.to_string().into(),
            holder: holder.map_or_else(|| "a person".to_owned(), |by| by.name.clone()),
            since: clock::wall_ago(since),
            expires_in_ms: millis(lease.expires_in),
            viewer: lease
                .viewer
                .map(|viewer| ViewerName::from(viewer.to_string())),
            viewer_connected: false,
            private: lease.private,
        })
    }
}

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Actor {
    /// The lease in the way, as others may know it.
    pub(super) fn lease_view(&self) -> Option<LeaseView> {
        let status = self.arbiter.status();
        let view = self.takeovers.lease_view(&status)?;
        let viewer = status.lease.and_then(|lease| lease.viewer);
        Some(LeaseView {
            viewer_connected: viewer
                .and_then(|viewer| self.viewers.get(&viewer).copied())
                .unwrap_or(false),
            ..view
        })
    }

    /// How things stand.
    pub(super) fn status(&self) -> ControlStatusResult {
        let status = self.arbiter.status();
        ControlStatusResult {
            desktop: self.id.clone(),
            control: match status.control {
                Control::Agent => handover_protocol::Control::Agent,
                Control::Human => handover_protocol::Control::Human,
                Control::Paused => handover_protocol::Control::Paused,
            },
            phase: match status.phase {
                Phase::Steady => handover_protocol::Phase::Steady,
                Phase::Draining => handover_protocol::Phase::Draining,
                Phase::Returning => handover_protocol::Phase::Returning,
            },
            epoch: status.epoch.0,
            lease: self.lease_view(),
            pause_reason: status.pause.map(refuse::pause_reason),
            last_hand_back: self.observations.last().cloned(),
            requests: self.links.hooks.requests(&self.id),
        }
    }

    /// What viewers show as the desktop's name.
    pub(super) fn title(&self) -> String {
        let status = self.arbiter.status();
        let who = match (status.control, status.phase) {
            (Control::Agent, Phase::Draining) => "handing over".to_owned(),
            (Control::Agent, _) => "agent in control".to_owned(),
            (Control::Human, Phase::Returning) => "handing back".to_owned(),
            (Control::Human, _) => match self.lease_view() {
                Some(lease) => format!("{} in control", lease.holder),
                None => "a person in control".to_owned(),
            },
            (Control::Paused, _) => "paused".to_owned(),
        };
        format!("{} - {who}", self.id)
    }

    /// The viewer whose input is live, if one is.
    pub(super) fn holder_viewer(&self) -> Option<handover_control::ViewerId> {
        let status = self.arbiter.status();
        let lease = status.lease?;
        (lease.stage == handover_control::LeaseStage::Live)
            .then_some(lease.viewer)
            .flatten()
    }

    /// Answers those who waited until control is not moving and all is on record.
    pub(super) fn settle(&mut self) {
        let status = self.arbiter.status();
        let moving = match status.phase {
            Phase::Steady => false,
            // A display that does not answer may never; nobody can act, and
            // that is the answer.
            _ => status.control != Control::Paused,
        };
        if moving || self.takeovers.recording > 0 || self.takeovers.settlers.is_empty() {
            return;
        }
        let result = self.status();
        for settler in std::mem::take(&mut self.takeovers.settlers) {
            // Whoever asked may have gone.
            let _ = settler.send(Ok(result.clone()));
        }
    }

    /// The refusal of a renewal. Its holder may not know yet that a limit has ended the lease, and is told so.
    pub(super) fn renewal_refused(
        &self,
        (lease, token): LeaseProof,
        refused: handover_control::Refusal,
    ) -> Refusal {
        let ended = self.takeovers.timed_out;
        let ended = ended.filter(|(ended, of, _)| *ended == lease && *of == token);
        let cause = self.arbiter.ends_by(lease, token);
        match cause.or(ended.map(|(.., cause)| cause)) {
            Some(cause @ (TimeoutCause::Idle | TimeoutCause::Maximum)) => {
                self.refused(refused).with(LIMIT, cause.to_string())
            }
            _ => self.refused(refused),
        }
    }

    /// The refusal of the arbiter's in words.
    pub(super) fn refused(&self, refused: handover_control::Refusal) -> Refusal {
        refuse::refused(&self.id, refused, self.lease_view())
    }
}

//! What a desktop's task is asked, and what comes back to it.

use handover_control::{
    AcquireRequest, Epoch, FlushId, GiveBack, LeaseId, OwnerId, PauseReason, PermitId, TokenHash,
    ViewerId,
};
use handover_protocol::{
    ControlAcquireResult, ControlRenewResult, ControlReturnResult, ControlStatusResult, HandBack,
    Hidden, Refusal,
};
use handover_rfb::keys::Keysym;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::acting::Queued;
use super::action::Action;
use super::by::By;
use super::observation::Observer;
use crate::display::x11::Locks;
use crate::system::process::ProcessIdentity;

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// A lease as its holder names it.
pub type LeaseProof = (LeaseId, TokenHash);

/// A person asks for control.
#[derive(Debug)]
pub struct Ask {
    /// Who.
    pub by: By,
    /// On which terms.
    pub terms: AcquireRequest,
    /// The lease's secret, for the answer only.
    pub token: Hidden,
    /// Why, in words.
    pub note: Option<String>,
    /// True to ask the holder, if there is one, instead of being refused.
    pub of_holder: bool,
    /// Where the answer goes.
    pub reply: Answer<ControlAcquireResult>,
}

/// One thing that the desktop's task is asked.
#[derive(Debug)]
pub enum Command {
    /// Do an action.
    Act(Queued),
    /// Type for the person in control.
    Secret {
        /// Who asks.
        by: By,
        /// What is typed.
        action: Action,
        /// The lease; the one that this connection holds if not given.
        lease: Option<LeaseProof>,
        /// Where the answer goes: the epoch.
        reply: Answer<u64>,
    },
    /// Give a permit for something that is not done by the desktop's task.
    Permit {
        /// Who asks.
        by: By,
        /// Whose processes do it.
        owner: OwnerId,
        /// The keeper of these, if they are a relayed server's.
        keeper: Option<ProcessIdentity>,
        /// Tells when they have ended.
        watching: JoinSet<()>,
        /// What it is, in a word.
        what: String,
        /// Where the answer goes.
        reply: Answer<(PermitId, Epoch)>,
    },
    /// What a permit was for is over.
    Complete {
        /// The permit.
        permit: PermitId,
        /// Only if it is this connection's own; the host's own permits have none.
        by: Option<By>,
        /// Where the answer goes.
        reply: Answer<()>,
    },
    /// No process of this owner is left.
    OwnerGone(OwnerId),
    /// Take control.
    Acquire(Ask),
    /// Keep control.
    Renew {
        /// The lease.
        lease: LeaseProof,
        /// Where the answer goes.
        reply: Answer<ControlRenewResult>,
    },
    /// Take a lease over to another connection.
    Reclaim {
        /// Who.
        by: By,
        /// The lease.
        lease: LeaseProof,
        /// Its secret, for the answer.
        token: Hidden,
        /// The viewer whose input becomes live.
        viewer: Option<ViewerId>,
        /// Where the answer goes.
        reply: Answer<ControlAcquireResult>,
    },
    /// Give control back.
    Return {
        /// Who.
        by: By,
        /// How.
        how: GiveBack,
        /// The lease; whichever there is if not given.
        lease: Option<LeaseProof>,
        /// For the agents.
        note: Option<String>,
        /// Where the answer goes, once control has moved.
        reply: Answer<ControlReturnResult>,
    },
    /// Take control away.
    Revoke {
        /// Who; the host itself if not given.
        by: Option<By>,
        /// Although somebody else has it.
        force: bool,
        /// Where the answer goes, once control has moved.
        reply: Answer<ControlStatusResult>,
    },
    /// Let nobody act.
    Pause {
        /// Who; the host itself if not given.
        by: Option<By>,
        /// Why.
        reason: PauseReason,
        /// Where the answer goes, once nobody can.
        reply: Answer<ControlStatusResult>,
    },
    /// End a pause.
    Resume {
        /// Who.
        by: By,
        /// Where the answer goes.
        reply: Answer<ControlStatusResult>,
    },
    /// The holder answers another person's request.
    AnswerRequest {
        /// The holder's lease.
        lease: LeaseProof,
        /// True to give control, false to keep it.
        give: bool,
        /// Where the answer goes.
        reply: Answer<ControlStatusResult>,
    },
    /// Would an agent's act be refused because a person is in control?
    MayAct(Answer<()>),
    /// Tell how things stand.
    Status(Answer<ControlStatusResult>),
    /// May this caller look now?
    Look {
        /// Who.
        by: By,
        /// Where the answer goes.
        reply: Answer<Look>,
    },
    /// A caller has a picture of this epoch.
    Looked {
        /// Whose eyes.
        observer: Observer,
        /// When it was taken.
        epoch: Epoch,
    },
    /// The hand-back that this caller has not heard of, if there is one.
    Tell {
        /// Who.
        observer: Observer,
        /// Where the answer goes.
        reply: oneshot::Sender<Option<HandBack>>,
    },
    /// Keep something in the record about an act that another part did.
    Record {
        /// The kind of event.
        kind: &'static str,
        /// Who did it.
        by: By,
        /// What else there is to say.
        fields: Map<String, Value>,
    },
    /// A viewer's socket exists.
    ViewerOpened(ViewerId),
    /// A viewer's socket could not be made.
    ViewerClosed(ViewerId),
    /// A person no longer waits for the holder's answer.
    Unask(handover_control::ControllerId),
    /// A client's connection to the host is closed.
    ConnectionGone(handover_control::ControllerId),
    /// The display's process has ended.
    ServerGone,
    /// End the task.
    Close(oneshot::Sender<()>),
}

/// What an observer may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The present epoch.
    pub epoch: Epoch,
    /// True in human time: what is seen then is not kept.
    pub human: bool,
}

/// What comes back to the task from what runs beside it.
#[derive(Debug)]
pub enum Report {
    /// The start of a takeover is stored, or could not be.
    StartRecorded {
        /// The lease.
        lease: LeaseId,
        /// Whether.
        stored: bool,
    },
    /// A pause, or the end of one, is stored or spooled.
    ChangeRecorded,
    /// The end of a takeover is stored or spooled.
    EndRecorded {
        /// The lease.
        lease: LeaseId,
        /// What the agents get.
        hand_back: HandBack,
    },
    /// What was there when a takeover began.
    Seen {
        /// The lease.
        lease: LeaseId,
        /// The windows, if they could be read.
        windows: Option<Vec<handover_protocol::Window>>,
        /// The lock keys.
        locks: Locks,
    },
    /// The clipboard is cleared, after the input before this flush.
    Cleared(FlushId),
    /// The call of a relayed server that this permit was for is over.
    CallOver(PermitId),
    /// Lock keys have to be pressed to be as they were before a takeover that
    /// is ending.
    Restore(Vec<Keysym>),
}

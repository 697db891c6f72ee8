//! One call of a tool, and what it waits for.

use std::time::Duration;

use handover_protocol::PermitName;

use super::records::Id;

/// How long a call may go on by itself after a person asked for control, before it is cancelled.
pub(super) const GRACE: Duration = Duration::from_millis(20);
/// How long the host may take to give or refuse a permit.
pub(super) const PERMIT_TIME: Duration = Duration::from_secs(3);
/// How long after it was cancelled a call may stay unanswered while a person waits for control. A server
/// that obeys a cancellation is not to answer, and one that does not obey goes on: they look alike, and only
/// that nothing of it runs any more is sure. By default a drain takes 5 s, in which there is time for that.
pub(super) const CUT_OFF: Duration = Duration::from_secs(2);
/// How soon it is asked again whether a person waits for control, while a call goes on that was cut off.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long a call that its client cancelled may stay unanswered until it counts as ended, if nobody asks
/// for control meanwhile: a server need not answer it.
pub(super) const CLIENT_CANCEL: Duration = Duration::from_secs(30);

/// A permit, as given on one connection to a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Permit {
    /// Which connection, counted from the first.
    pub(super) link: u64,
    /// The host's name for it.
    pub(super) name: PermitName,
}

/// A call of a tool, counted from the first.
pub(super) type CallId = u64;

/// See the module.
#[derive(Debug)]
pub(super) struct Call {
    /// Its id.
    pub(super) id: Id,
    /// The same as the client wrote it.
    pub(super) raw_id: String,
    /// The tool.
    pub(super) tool: String,
    /// How far it has come.
    pub(super) stage: Stage,
    /// When a person asked for control.
    pub(super) interrupted: Option<Duration>,
    /// When the server was told to give it up.
    pub(super) cancelled: Option<Duration>,
    /// Whether it was this relay that told it so.
    pub(super) by_us: bool,
    /// When it was asked last whether a person still waits for control.
    pub(super) asked: Option<Duration>,
}

/// How far a call has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// The host was asked at this time.
    Asking(Duration),
    /// It may be passed on. What only looks has no permit.
    Granted(Option<Permit>),
    /// The server has it.
    Sent(Option<Permit>),
}

impl Call {
    /// One that the host is asked about now.
    pub(super) fn new(id: Id, raw_id: &str, tool: &str, now: Duration) -> Self {
        Self {
            id,
            raw_id: raw_id.to_owned(),
            tool: tool.to_owned(),
            stage: Stage::Asking(now),
            interrupted: None,
            cancelled: None,
            by_us: false,
            asked: None,
        }
    }

    /// The server is told to give it up.
    pub(super) fn cancel(&mut self, now: Duration) {
        self.cancelled = Some(now);
        self.by_us = true;
    }

    /// Whether the server has it.
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.stage, Stage::Sent(_))
    }

    /// Whether the server was told to give it up since the host that had permitted it is gone.
    pub(super) fn has_lost_its_host(&self) -> bool {
        matches!(self.stage, Stage::Sent(None)) && self.by_us
    }

    /// Whether the host has not answered yet.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking(_))
    }

    /// The permit that it holds.
    pub(super) fn permit(&self) -> Option<&Permit> {
        match &self.stage {
            Stage::Granted(permit) | Stage::Sent(permit) => permit.as_ref(),
            Stage::Asking(_) => None,
        }
    }

    /// When something is to happen because nothing else did. It is not asked twice at once whether a
    /// person still waits.
    pub(super) fn due(&self, asking_draining: bool) -> Option<Duration> {
        match (&self.stage, self.interrupted, self.cancelled) {
            (Stage::Asking(since), ..) => Some(*since + PERMIT_TIME),
            (Stage::Sent(_), Some(at), None) => Some(at + GRACE),
            (Stage::Sent(_), Some(_), Some(at)) => (!asking_draining).then(|| {
                let again = self.asked.map(|asked| asked + ASK_AGAIN);
                again.unwrap_or_default().max(at + CUT_OFF)
            }),
            (Stage::Sent(Some(_)), None, Some(at)) => Some(at + CLIENT_CANCEL),
            _ => None,
        }
    }
}

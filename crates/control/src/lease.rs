//! A person's lease: what is asked for, what is held, what others are told.

use std::time::Duration;

use crate::{
    ids::{ControllerId, Epoch, LeaseId, TokenHash, ViewerId},
    time::Moment,
};

/// The share of a limit that is left when its warning is given.
const WARNING_SHARE: u32 = 4;

/// The longest time ahead of a limit at which its warning is given.
const WARNING_MOST: Duration = Duration::from_secs(60);

/// What becomes of a lease when its controller or its viewer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnDisconnect {
    /// The lease ends.
    End,
    /// Input stops at once and the lease is parked: for this long, whoever
    /// presents its token reclaims it.
    Linger(Duration),
}

/// A person's request for control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AcquireRequest {
    /// The name the lease will have; never used before.
    pub lease: LeaseId,
    /// The hash of the token that will prove the right to it.
    pub token: TokenHash,
    /// The connection that asks. When it goes, so does the request.
    pub controller: ControllerId,
    /// The viewer whose input the lease will admit, if any.
    pub viewer: Option<ViewerId>,
    /// How long the lease lives from its grant and from each renewal.
    pub ttl: Duration,
    /// How long to wait for the agents' permits before giving up.
    pub drain: Duration,
    /// How long the person may do nothing, if limited.
    pub idle: Option<Duration>,
    /// How long the lease may last in all, if limited.
    pub max: Option<Duration>,
    /// What becomes of the lease when its controller or viewer goes.
    pub on_disconnect: OnDisconnect,
    /// Whether agents may not even look while the lease is live.
    pub private: bool,
}

/// A lease from its request to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) terms: AcquireRequest,
    /// The grant; before it, the request.
    pub(crate) since: Moment,
}

impl Lease {
    pub(crate) fn id(&self) -> LeaseId {
        self.terms.lease
    }

    pub(crate) fn is(&self, lease: LeaseId, token: TokenHash) -> bool {
        self.terms.lease == lease && self.terms.token == token
    }
}

/// How long ahead of `limit` its warning is given.
pub(crate) fn warning_ahead(limit: Duration) -> Duration {
    (limit / WARNING_SHARE).min(WARNING_MOST)
}

/// The answer to a renewal or a reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Time until the lease ends unless it is renewed again; whichever of its
    /// deadlines comes first.
    pub expires_in: Duration,
    /// The epoch that the lease's grant began.
    pub epoch: Epoch,
}

/// How far a lease has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseStage {
    /// Asked for; the agents' permits are being drained or the grant stored.
    Pending,
    /// Granted; input is admitted.
    Live,
    /// Granted, but its controller or viewer is away; no input is admitted.
    Parked,
    /// Over; input is closed and control has not moved yet.
    Ending,
}

/// What may be told to anyone about the lease that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// The lease.
    pub lease: LeaseId,
    /// The connection of its holder.
    pub controller: ControllerId,
    /// The viewer whose input it admits, if any.
    pub viewer: Option<ViewerId>,
    /// The instant of the grant; of the request, while pending.
    pub since: Moment,
    /// Time until it ends unless renewed; until the drain gives up, while
    /// pending; zero while ending.
    pub expires_in: Duration,
    /// How far it has come.
    pub stage: LeaseStage,
    /// Whether agents may not even look.
    pub private: bool,
}

//! One person asks the holder for control: what the holder is told of it.

use handover_control::LeaseId;
use handover_protocol::{LeaseRequest, LeaseRequestEnded};

use super::actor::Actor;
use crate::attach::Notice;

impl Actor {
    /// Tells the holder who asks.
    pub(super) fn tell_holder(&mut self, holder: LeaseId, asker: LeaseId) {
        // Told of before the asker is in the list: the request is one step of
        // the arbiter's, its effects are done after it.
        let Some(asking) = self.takeovers.askers.get_mut(&asker) else {
            return;
        };
        asking.asks = Some(holder);
        let notice = Notice::LeaseRequest(LeaseRequest {
            lease_id: holder.to_string().into(),
            from: asking.by.name.clone(),
            note: asking.note.clone(),
        });
        self.notify_holder(holder, &notice);
    }

    /// The holder has answered whoever asked for `holder`'s lease.
    pub(super) fn request_answered(&mut self, holder: LeaseId) {
        let mut askers = self.takeovers.askers.values_mut();
        if let Some(asker) = askers.find(|asker| asker.asks == Some(holder)) {
            asker.asks = None;
            let from = asker.by.name.clone();
            self.tell_request_ended(holder, &from);
        }
    }

    /// Tells the holder that `from` asks no more.
    pub(super) fn tell_request_ended(&self, holder: LeaseId, from: &str) {
        let notice = Notice::LeaseRequestEnded(LeaseRequestEnded {
            lease_id: holder.to_string().into(),
            from: from.to_owned(),
        });
        self.notify_holder(holder, &notice);
    }

    /// To the connection that has this lease, if it is held still.
    fn notify_holder(&self, lease: LeaseId, notice: &Notice) {
        if let Some(holding) = &self.takeovers.holder
            && holding.lease == lease
        {
            self.links.outlets.notify(holding.by.outlet(), notice);
        }
    }
}

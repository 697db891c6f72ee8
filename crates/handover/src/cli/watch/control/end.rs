//! The end of a takeover: control is given back, and what became of it is learnt.

use std::time::{Duration, Instant};

use handover_protocol::{
    ControlReturnParams, ControlReturnResult, End, ErrorCode, Event, HandBack, JournalParams,
    JournalResult, Method, ReturnReason,
};
use serde_json::Value;

use super::super::super::failure::Failure;
use super::super::ended::{Cause, Outcome, TimeOver};
use super::{Takeover, host_gone};

/// How long the hand-back may take after control has returned.
const HAND_BACK: Duration = Duration::from_secs(3);

impl Takeover {
    /// Returns control if it is still held, and fetches the hand-back.
    pub(super) async fn finish(&mut self, cause: Cause) -> Result<Outcome, Failure> {
        let reason = match cause {
            Cause::Done | Cause::Suspended => Some(ReturnReason::Return),
            Cause::Interrupted | Cause::NoViewer(_) => Some(ReturnReason::Cancelled),
            Cause::Ended(_) => None,
        };
        let returned = match reason {
            Some(reason) => self.give_back(reason).await?,
            None => None,
        };
        let hand_back = self.hand_back().await;
        let timed_out = hand_back
            .as_ref()
            .is_some_and(|hand_back| hand_back.end == End::Timeout);
        let time_over = match timed_out {
            true => self.time_over().await,
            false => None,
        };
        Ok(Outcome {
            cause,
            returned,
            hand_back,
            time_over,
        })
    }

    /// Which time was over, as the record of the end says.
    async fn time_over(&self) -> Option<TimeOver> {
        let params = JournalParams {
            since: None,
            limit: Some(JournalParams::MAX_LIMIT),
            kinds: Some(vec!["takeover_timeout".to_owned()]),
        };
        let ends: JournalResult = self.session.call(Method::Journal, &params).await.ok()?;
        let lease = self.lease.lease_id.as_str();
        let field = |event: &Event, name: &str| {
            let value = event.fields.get(name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        let mut latest = ends.events.iter().rev();
        let end = latest.find(|event| field(event, "leaseId").as_deref() == Some(lease))?;
        TimeOver::named(&field(end, "cause")?)
    }

    /// `None` if the lease had ended already, for instance because its viewer closed.
    async fn give_back(
        &self,
        reason: ReturnReason,
    ) -> Result<Option<ControlReturnResult>, Failure> {
        let params = ControlReturnParams {
            lease_id: Some(self.lease.lease_id.clone()),
            token: Some(self.lease.token.clone()),
            desktop: None,
            reason: Some(reason),
            note: self.note.clone(),
        };
        match self.session.call(Method::ControlReturn, &params).await {
            Ok(result) => Ok(Some(result)),
            Err(failure) if failure.code() == ErrorCode::LeaseStale => Ok(None),
            Err(failure) if failure.code() == ErrorCode::SessionUnknown => Err(host_gone()),
            Err(failure) => Err(failure),
        }
    }

    /// The hand-back of this takeover. It may come a moment after control has returned.
    async fn hand_back(&self) -> Option<HandBack> {
        let deadline = Instant::now() + HAND_BACK;
        while Instant::now() < deadline {
            let status = self.status().await.ok()?;
            match status.last_hand_back {
                Some(hand_back) if hand_back.epoch > self.lease.epoch => return Some(hand_back),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        None
    }
}

//! How control stood when a former host ended, and how it stands now.

use handover_control::{Control, Epoch, PauseReason};
use handover_protocol::{DesktopId, End, HandBack, Timestamp};
use handover_store::{NewEvent, Put, Source, Store, StoreError};
use serde::Deserialize;
use serde_json::json;

use crate::desktop::{Beginning, control_key};
use crate::system::clock;

/// The projection that a desktop's task keeps.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    epoch: u64,
    control: String,
    #[serde(default)]
    pause_reason: Option<String>,
    #[serde(default)]
    lease_id: Option<String>,
    #[serde(default)]
    holder: Option<String>,
    #[serde(default)]
    since: Option<Timestamp>,
}

/// Ends what a former host left of a takeover, on record, and says how control
/// begins. The new host's epoch is one that no input of the former can have.
///
/// # Errors
/// The record cannot be read.
pub async fn recover(store: &Store, id: &DesktopId) -> Result<Beginning, StoreError> {
    let Some(value) = store.get(control_key(id)).await? else {
        return Ok(Beginning::after_crash(Epoch(1), None, None));
    };
    let kept: Kept = match serde_json::from_value(value) {
        Ok(kept) => kept,
        Err(error) => {
            // Never free the agents on the word of something unreadable.
            tracing::error!(desktop = %id, %error, "how control stood cannot be read");
            return Ok(Beginning::after_crash(
                Epoch(1),
                Some(PauseReason::Requested),
                None,
            ));
        }
    };
    let epoch = Epoch(kept.epoch).next();
    match kept.control.as_str() {
        "human" => {
            let held_ms = kept.since.map_or(0, |since| {
                clock::wall().unix_ms().saturating_sub(since.unix_ms())
            });
            let event = NewEvent::new("takeover_recovered", Source::Host)
                .desktop(id.as_str())
                .epoch(epoch.0)
                .field_if("leaseId", kept.lease_id)
                .field_if("holder", kept.holder.as_deref())
                .field("heldMs", held_ms)
                .field("cause", "host_restarted");
            let control = Put::set(
                control_key(id),
                json!({"epoch": epoch.0, "control": Control::Agent.to_string()}),
            );
            store.append_spooled_with(event, vec![control]).await;
            let hand_back = HandBack {
                end: End::Recovered,
                holder: kept.holder.unwrap_or_else(|| "a person".to_owned()),
                held_ms,
                note: None,
                epoch: epoch.0,
                screenshot: None,
                windows_opened: Vec::new(),
                windows_closed: Vec::new(),
            };
            Ok(Beginning::after_crash(epoch, None, Some(hand_back)))
        }
        "paused" => {
            let reason = match kept.pause_reason.as_deref() {
                Some("foreign_connection") => PauseReason::ForeignConnection,
                _ => PauseReason::Requested,
            };
            Ok(Beginning::after_crash(epoch, Some(reason), None))
        }
        _ => Ok(Beginning::after_crash(epoch, None, None)),
    }
}

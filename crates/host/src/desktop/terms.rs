//! The terms on which a person asks for control, checked.

use std::time::Duration;

use handover_control::{AcquireRequest, ControllerId, LeaseId, OnDisconnect, TokenHash, ViewerId};
use handover_protocol::{
    ControlAcquireParams, ErrorCode, Hidden, LeaseName, OnDisconnect as WireOnDisconnect, Refusal,
    ViewerName,
};
use sha2::{Digest, Sha256};

/// The TTL of a lease that names none.
pub const DEFAULT_TTL_MS: u64 = 30_000;

/// The drain budget of a request that names none.
pub const DEFAULT_DRAIN_MS: u64 = 5_000;

/// Bounds of the TTL and of the time to reclaim a parked lease: long enough to
/// be renewed over a slow connection, short enough that a lost holder does not
/// keep agents waiting.
const TTL_MS: (u64, u64) = (200, 600_000);

/// Bounds of the drain budget.
const DRAIN_MS: (u64, u64) = (0, 60_000);

/// Bounds of the idle limit and of the maximum: a day.
const LIMIT_MS: (u64, u64) = (200, 86_400_000);

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 4096;

fn within(name: &str, value: u64, (least, most): (u64, u64)) -> Result<Duration, Refusal> {
    if (least..=most).contains(&value) {
        return Ok(Duration::from_millis(value));
    }
    Err(Refusal::bad_param(
        name,
        format!("`{name}` is {value}; give {least} to {most} milliseconds"),
    ))
}

/// Checks the length of what a person leaves in writing.
///
/// # Errors
/// `bad_params`.
pub fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if note.len() > MAX_NOTE => Err(Refusal::bad_param(
            "note",
            format!(
                "`note` is {} bytes; shorten it to {MAX_NOTE} at most",
                note.len()
            ),
        )),
        _ => Ok(()),
    }
}

/// The terms of a request for control, under this name and secret.
///
/// # Errors
/// `bad_params` for a time out of bounds, a note that is too long, or a viewer
/// that cannot be one.
pub fn terms(
    params: &ControlAcquireParams,
    controller: ControllerId,
    lease: LeaseId,
    token: TokenHash,
) -> Result<AcquireRequest, Refusal> {
    check_note(params.note.as_deref())?;
    let ttl_ms = params.ttl_ms.unwrap_or(DEFAULT_TTL_MS);
    let limit = |name: &str, value: Option<u64>| {
        value.map(|value| within(name, value, LIMIT_MS)).transpose()
    };
    Ok(AcquireRequest {
        lease,
        token,
        controller,
        viewer: params.viewer.as_ref().map(viewer_id).transpose()?,
        ttl: within("ttlMs", ttl_ms, TTL_MS)?,
        drain: within(
            "drainMs",
            params.drain_ms.unwrap_or(DEFAULT_DRAIN_MS),
            DRAIN_MS,
        )?,
        idle: limit("idleMs", params.idle_ms)?,
        max: limit("maxMs", params.max_ms)?,
        on_disconnect: match params.on_disconnect.unwrap_or_default() {
            WireOnDisconnect::End => OnDisconnect::End,
            WireOnDisconnect::Linger => OnDisconnect::Linger(within(
                "lingerMs",
                params.linger_ms.unwrap_or(ttl_ms),
                TTL_MS,
            )?),
        },
        private: params.private.unwrap_or(false),
    })
}

/// A viewer by its name.
///
/// # Errors
/// `bad_params`.
pub fn viewer_id(name: &ViewerName) -> Result<ViewerId, Refusal> {
    numbered(name.as_str(), "v", 10)
        .map(ViewerId)
        .ok_or_else(|| {
            Refusal::bad_param(
                "viewer",
                "`viewer` is no viewer's name; give the one that `view.open` answered",
            )
        })
}

/// A lease by its name, with the proof of its token.
///
/// # Errors
/// `lease_stale`: what is no lease's name is no live lease.
pub fn proof(name: &LeaseName, token: &Hidden) -> Result<(LeaseId, TokenHash), Refusal> {
    match numbered(name.as_str(), "l-", 16) {
        Some(id) => Ok((LeaseId(id), hash(token))),
        None => Err(Refusal::new(
            ErrorCode::LeaseStale,
            "`leaseId` is no live lease; take control anew",
        )),
    }
}

/// A lease that may be named or left out, and its token with it.
///
/// # Errors
/// `bad_params` for one without the other, else as [`proof`].
pub fn named(
    name: Option<&LeaseName>,
    token: Option<&Hidden>,
) -> Result<Option<(LeaseId, TokenHash)>, Refusal> {
    match (name, token) {
        (Some(name), Some(token)) => proof(name, token).map(Some),
        (None, None) => Ok(None),
        _ => Err(Refusal::bad_param(
            "leaseId",
            "`leaseId` and `token` go together; give both or neither",
        )),
    }
}

/// The number behind a prefix.
pub fn numbered(name: &str, prefix: &str, radix: u32) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    u64::from_str_radix(digits, radix).ok()
}

/// What the host keeps of a lease's secret.
pub fn hash(token: &Hidden) -> TokenHash {
    TokenHash(Sha256::digest(token.expose()).into())
}

/// A new lease's name and secret.
///
/// # Errors
/// `internal` if the kernel gives no random bytes.
pub fn new_lease() -> Result<(LeaseId, Hidden), Refusal> {
    let mut random = [0; 40];
    getrandom::fill(&mut random).map_err(|error| {
        Refusal::new(
            ErrorCode::Internal,
            format!("the kernel gave no random bytes: {error}"),
        )
    })?;
    let (id, token) = random.split_at(8);
    let id = id.iter().fold(0, |id, &byte| id << 8 | u64::from(byte));
    Ok((LeaseId(id), Hidden::new(hex::encode(token))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(params: &ControlAcquireParams) -> Result<AcquireRequest, Refusal> {
        terms(params, ControllerId(1), LeaseId(1), TokenHash([0; 32]))
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let terms = checked(&ControlAcquireParams::default()).unwrap();
        assert_eq!(terms.ttl, Duration::from_secs(30));
        assert_eq!(terms.drain, Duration::from_secs(5));
        assert_eq!(terms.on_disconnect, OnDisconnect::End);
        assert_eq!((terms.idle, terms.max), (None, None));
    }

    #[test]
    fn lingering_lasts_as_long_as_the_ttl_unless_said_otherwise() {
        let params = ControlAcquireParams {
            ttl_ms: Some(2000),
            on_disconnect: Some(WireOnDisconnect::Linger),
            ..Default::default()
        };
        let terms = checked(&params).unwrap();
        assert_eq!(
            terms.on_disconnect,
            OnDisconnect::Linger(Duration::from_secs(2))
        );
    }

    #[test]
    fn times_out_of_bounds_are_named() {
        for (params, name) in [
            (
                ControlAcquireParams {
                    ttl_ms: Some(0),
                    ..Default::default()
                },
                "ttlMs",
            ),
            (
                ControlAcquireParams {
                    drain_ms: Some(60_001),
                    ..Default::default()
                },
                "drainMs",
            ),
            (
                ControlAcquireParams {
                    max_ms: Some(u64::MAX),
                    ..Default::default()
                },
                "maxMs",
            ),
        ] {
            let refusal = checked(&params).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::BadParams);
            assert!(refusal.message.contains(name), "{refusal}");
        }
    }

    #[test]
    fn notes_are_bounded_in_bytes() {
        assert!(check_note(None).is_ok());
        assert!(check_note(Some(&"x".repeat(MAX_NOTE))).is_ok());
        let refusal = check_note(Some(&"é".repeat(MAX_NOTE / 2 + 1))).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::BadParams);
        let params = ControlAcquireParams {
            note: Some("x".repeat(MAX_NOTE + 1)),
            ..Default::default()
        };
        assert!(checked(&params).is_err());
    }

    #[test]
    fn a_lease_goes_with_its_token() {
        let (id, token) = new_lease().unwrap();
        let name = LeaseName::from(id.to_string());
        assert_eq!(named(None, None).unwrap(), None);
        let both = named(Some(&name), Some(&token)).unwrap();
        assert_eq!(both, Some((id, hash(&token))));
        for half in [named(Some(&name), None), named(None, Some(&token))] {
            assert_eq!(half.unwrap_err().code, ErrorCode::BadParams);
        }
    }

    #[test]
    fn leases_read_back() {
        let (id, token) = new_lease().unwrap();
        let name = LeaseName::from(id.to_string());
        assert_eq!(proof(&name, &token).unwrap(), (id, hash(&token)));
        assert_ne!(new_lease().unwrap().1, token);
    }
}

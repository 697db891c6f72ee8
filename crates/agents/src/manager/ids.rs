//! Names of agents: short, easy to read out, unique among all live sessions.

use handover_protocol::AgentId;

/// Without those that look like others.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz";
const DIGITS_TOO: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
/// Characters of a name.
const LENGTH: usize = 6;

/// A name that `taken` does not know.
///
/// # Errors
/// When there are no random bytes.
pub(super) fn fresh(mut taken: impl FnMut(&AgentId) -> bool) -> Result<AgentId, getrandom::Error> {
    loop {
        let mut random = [0u8; LENGTH];
        getrandom::fill(&mut random)?;
        let name: String = random
            .iter()
            .enumerate()
            .map(|(place, &byte)| {
                let letters = if place == 0 { LETTERS } else { DIGITS_TOO };
                char::from(letters[usize::from(byte) % letters.len()])
            })
            .collect();
        let id = AgentId(name);
        if !taken(&id) {
            return Ok(id);
        }
    }
}

/// A name for a steer whose sender chose none: `st-` and hexadecimal digits.
///
/// # Errors
/// When there are no random bytes.
pub(super) fn fresh_steer() -> Result<handover_protocol::SteerId, getrandom::Error> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random)?;
    let number = u64::from_be_bytes(random);
    Ok(handover_protocol::SteerId(format!("st-{number:016x}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn short_readable_and_never_one_that_is_taken() {
        let mut known = HashSet::new();
        for _ in 0..500 {
            let id = fresh(|id| known.contains(id)).unwrap();
            assert_eq!(id.as_str().len(), LENGTH);
            assert!(id.as_str().starts_with(|c: char| c.is_ascii_lowercase()));
            assert!(known.insert(id));
        }
    }
}

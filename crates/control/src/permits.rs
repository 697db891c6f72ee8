//! The agents' permits that are out.

use std::collections::BTreeMap;

use crate::ids::{OwnerId, PermitId};

/// How many permits may be out at once on one desktop.
pub const MAX_OUTSTANDING: usize = 1024;

/// What is known of a permit that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Permit {
    owner: OwnerId,
    /// False once control has begun to leave the agent: the permit then admits
    /// no more input, ever, but is waited for until it is completed.
    valid: bool,
}

/// Permits that have been given and not completed, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Permits {
    given: u64,
    out: BTreeMap<PermitId, Permit>,
}

impl Permits {
    /// Gives a permit, or `None` if [`MAX_OUTSTANDING`] are out.
    pub(crate) fn give(&mut self, owner: OwnerId) -> Option<PermitId> {
        if self.out.len() >= MAX_OUTSTANDING {
            return None;
        }
        self.given += 1;
        let id = PermitId(self.given);
        self.out.insert(id, Permit { owner, valid: true });
        Some(id)
    }

    pub(crate) fn complete(&mut self, id: PermitId) {
        self.out.remove(&id);
    }

    pub(crate) fn complete_all_of(&mut self, owner: OwnerId) {
        self.out.retain(|_, permit| permit.owner != owner);
    }

    /// Makes every permit void and names all that are out: what is still under way since an earlier takeover
    /// came to nothing has to end for this one too.
    pub(crate) fn void_all(&mut self) -> Vec<PermitId> {
        for permit in self.out.values_mut() {
            permit.valid = false;
        }
        self.out.keys().copied().collect()
    }

    /// Whether the permit is out and valid; `None` if it is not out.
    pub(crate) fn is_valid(&self, id: PermitId) -> Option<bool> {
        self.out.get(&id).map(|permit| permit.valid)
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The mistake that no code may make, for the tests that look for it.
    #[cfg(test)]
    pub(crate) fn revive_all(&mut self) {
        for permit in self.out.values_mut() {
            permit.valid = true;
        }
    }
}

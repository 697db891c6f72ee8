//! Scripts that a client has registered for documents to come.
//!
//! They would begin to run in the pages that a person opens. So they are taken out while a person is in
//! control and put in again afterwards. What has a world of its own leaves an empty script there, by which
//! each new document gets that world as before: clients wait for it. Since the browser gives its names for
//! such scripts anew each time, clients get names of the gate's own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::gate::{Effect, Gate, Held, Permit};
use crate::message::{self, FAILED, read};
use crate::table::Pending;

pub(crate) const ADD: &str = "Page.addScriptToEvaluateOnNewDocument";
pub(crate) const REMOVE: &str = "Page.removeScriptToEvaluateOnNewDocument";

/// Scripts of one session, at most.
const MAX_SCRIPTS: usize = 256;
/// Bytes of all of them.
const MAX_BYTES: usize = 16 << 20;

/// The browser's name for a script, as `identifier`.
#[derive(Debug, Deserialize)]
struct Named {
    identifier: String,
}

#[derive(Debug)]
struct Script {
    /// How it is registered again; it does not run at once then.
    params: Value,
    bytes: usize,
    /// The browser's name for it, while it is registered.
    name: Option<String>,
    /// The browser's name for the empty script in its place.
    stand_in: Option<String>,
}

/// The scripts of one session, by the client's name for them.
#[derive(Debug, Default)]
pub(crate) struct NewDocuments {
    last: u64,
    scripts: BTreeMap<u64, Script>,
}

/// A script whose name the browser is asked for.
#[derive(Debug)]
pub(crate) struct Registering {
    session: String,
    script: u64,
    stand_in: bool,
}

impl NewDocuments {
    /// Whether there is room for a script with these parameters.
    fn has_room_for(&self, bytes: usize) -> bool {
        let held: usize = self.scripts.values().map(|script| script.bytes).sum();
        self.scripts.len() < MAX_SCRIPTS && held.saturating_add(bytes) <= MAX_BYTES
    }
}

impl Gate {
    /// Whether a client may register this script. If not, it is told so.
    pub(crate) fn may_register(&mut self, held: &Held, permit: Option<Permit>) -> bool {
        let bytes = held
            .params
            .as_deref()
            .map_or(0, |params| params.get().len());
        let session = self.sessions.get(&held.within);
        if session.is_none_or(|session| session.documents.has_room_for(bytes)) {
            return true;
        }
        let text = "too many or too long scripts for new documents; remove some";
        let answer = message::error(Some(held.id), FAILED, text, None, held.session.as_deref());
        self.effects
            .push_back(Effect::ToClient(held.client, answer));
        self.effects.extend(permit.map(Effect::Complete));
        false
    }

    /// A client's script is registered. What its client is answered.
    pub(crate) fn registered(
        &mut self,
        within: &str,
        params: &RawValue,
        result: &RawValue,
    ) -> Option<Box<RawValue>> {
        let named: Named = read(Some(result))?;
        let mut parsed: Value = serde_json::from_str(params.get()).ok()?;
        parsed.as_object_mut()?.remove("runImmediately");
        let documents = &mut self.sessions.get_mut(within)?.documents;
        documents.last += 1;
        let number = documents.last;
        let script = Script {
            params: parsed,
            bytes: params.get().len(),
            name: Some(named.identifier),
            stand_in: None,
        };
        documents.scripts.insert(number, script);
        if self.closed {
            self.take_out_scripts(within);
        }
        serde_json::value::to_raw_value(&json!({"identifier": number.to_string()})).ok()
    }

    /// A client takes a script out. What to send in place of its parameters, or none if there is nothing
    /// to send.
    pub(crate) fn unregistered(&mut self, held: &Held) -> Option<Box<RawValue>> {
        let named: Option<Named> = read(held.params.as_deref());
        let number = named.and_then(|named| named.identifier.parse::<u64>().ok());
        let session = self.sessions.get_mut(&held.within);
        let script = session
            .zip(number)
            .and_then(|(session, number)| session.documents.scripts.remove(&number));
        // One that the client does not have gets the browser's own words.
        let name = script.map_or_else(|| Some(String::new()), |script| script.name);
        serde_json::value::to_raw_value(&json!({"identifier": name?})).ok()
    }

    /// Control leaves the agents: none of their scripts begins any more.
    pub(crate) fn take_out_scripts(&mut self, within: &str) {
        let Some(session) = self.sessions.get_mut(within) else {
            return;
        };
        let scripts = session.documents.scripts.iter_mut();
        let taken: Vec<(u64, String, Value)> = scripts
            .filter_map(|(number, script)| {
                let name = script.name.take()?;
                Some((*number, name, script.params["worldName"].clone()))
            })
            .collect();
        for (number, name, world) in taken {
            if world.as_str().is_some_and(|world| !world.is_empty()) {
                let params = json!({"source": "", "worldName": world});
                self.register(within, number, true, &params);
            }
            self.take_out(within, &name);
        }
    }

    /// Control is with the agents again, and so are their scripts.
    pub(crate) fn put_in_scripts(&mut self, within: &str) {
        let Some(session) = self.sessions.get_mut(within) else {
            return;
        };
        let scripts = session.documents.scripts.iter_mut();
        let absent: Vec<(u64, Option<String>, Value)> = scripts
            .filter(|(_, script)| script.name.is_none())
            .map(|(number, script)| (*number, script.stand_in.take(), script.params.clone()))
            .collect();
        for (number, stand_in, params) in absent {
            self.register(within, number, false, &params);
            if let Some(stand_in) = stand_in {
                self.take_out(within, &stand_in);
            }
        }
    }

    /// The browser has named what the gate has registered.
    pub(crate) fn named(&mut self, registering: &Registering, result: Option<&RawValue>) {
        let Some(Named { identifier }) = result.and_then(|result| read(Some(result))) else {
            return;
        };
        let Registering {
            session,
            script,
            stand_in,
        } = registering;
        let Some(known) = self.sessions.get_mut(session) else {
            return;
        };
        match known.documents.scripts.get_mut(script) {
            Some(script) if *stand_in == self.closed => {
                let place = if *stand_in {
                    &mut script.stand_in
                } else {
                    &mut script.name
                };
                let earlier = place.replace(identifier);
                if let Some(earlier) = earlier {
                    self.take_out(session, &earlier);
                }
            }
            // Control has changed hands meanwhile, or the client has taken the script out.
            _ => self.take_out(session, &identifier),
        }
    }

    fn register(&mut self, within: &str, script: u64, stand_in: bool, params: &Value) {
        let registering = Registering {
            session: within.to_owned(),
            script,
            stand_in,
        };
        self.own(ADD, Some(params), Pending::Named(registering), Some(within));
    }

    fn take_out(&mut self, within: &str, name: &str) {
        let params = json!({"identifier": name});
        self.own(REMOVE, Some(&params), Pending::Ignored, Some(within));
    }
}

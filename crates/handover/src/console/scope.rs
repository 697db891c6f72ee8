//! What a browser may ask of a host, and what of the answers it sees.
//!
//! Most browsers may say what the app says, to every session. One that came by a link to one desktop
//! knows that desktop alone: it names no other one, and what is about others is taken out of what it is
//! told.

use handover_protocol::{DesktopId, ErrorCode, Method, Refusal, SessionId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::places;

/// What a link or a cookie opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every session of this user.
    All,
    /// One desktop.
    Desktop {
        /// Its session.
        session: SessionId,
        /// The desktop.
        desktop: DesktopId,
    },
}

/// What the app may call.
const APP: &[Method] = &[
    Method::List,
    Method::Subscribe,
    Method::Journal,
    Method::Steer,
    Method::Abort,
    Method::Result,
    Method::Answer,
    Method::RequestStatus,
    Method::ControlStatus,
    Method::ControlAcquire,
    Method::ControlRenew,
    Method::ControlReclaim,
    Method::ControlReturn,
    Method::ControlRevoke,
    Method::ControlPause,
    Method::ControlResume,
    Method::ControlRequest,
    Method::ControlGive,
    Method::ControlRefuse,
    Method::ControlSecret,
    Method::DesktopScreenshot,
    Method::DesktopWindows,
    Method::ViewOpen,
    Method::Stop,
    Method::StopAllInput,
];

/// How a method names the desktop that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// It is about the session; what it answers is filtered.
    Session,
    /// `desktop`.
    Desktop,
    /// `leaseId`.
    Lease,
}

/// The methods of a browser that knows one desktop.
fn names(method: Method) -> Option<Names> {
    match method {
        Method::List | Method::Subscribe | Method::Journal => Some(Names::Session),
        Method::ControlStatus
        | Method::ControlAcquire
        | Method::ControlReturn
        | Method::ControlRevoke
        | Method::ControlPause
        | Method::ControlResume
        | Method::ControlRequest
        | Method::ControlSecret
        | Method::DesktopScreenshot
        | Method::ViewOpen => Some(Names::Desktop),
        Method::ControlRenew
        | Method::ControlReclaim
        | Method::ControlGive
        | Method::ControlRefuse => Some(Names::Lease),
        _ => None,
    }
}

/// What becomes of an answer on its way to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It passes as it is.
    Whole,
    /// It passes but for where files lie.
    Named,
    /// It names a viewer, whose socket the browser does not see.
    View,
    /// It grants a lease, which is remembered.
    Lease,
    /// It lists what the session has.
    List,
    /// It lists events.
    Events,
}

impl Scope {
    /// The words of the wire.
    pub fn to_json(&self, until: Option<handover_protocol::Timestamp>) -> Value {
        match self {
            Self::All => json!({"kind": "all"}),
            Self::Desktop { session, desktop } => json!({
                "kind": "desktop", "session": session, "desktop": desktop, "expiresAt": until,
            }),
        }
    }

    /// Whether the session is any of its business.
    pub fn has_session(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Desktop { session, .. } => session.as_str() == id,
        }
    }

    /// The method called `name`, if it may be called.
    ///
    /// # Errors
    /// `method_unknown`, with those that may be in `data.supported`.
    pub fn method(&self, name: &str) -> Result<Method, Refusal> {
        let allowed = |method: &Method| match self {
            Self::All => APP.contains(method),
            Self::Desktop { .. } => names(*method).is_some(),
        };
        name.parse().ok().filter(allowed).ok_or_else(|| {
            let message = "the console has no such method; `data.supported` lists those it has";
            let supported = Method::ALL.iter().filter(|method| allowed(method));
            let supported: Vec<_> = supported.map(|method| method.name()).collect();
            Refusal::new(ErrorCode::MethodUnknown, message).with("supported", supported)
        })
    }

    /// The parameters of a call as they go to the host, on one line, and what becomes of the answer.
    /// `has_lease` says whether this browser was granted a lease.
    ///
    /// # Errors
    /// `session_unknown`, `caller_refused`, `lease_stale`, `bad_params`: what is called is out of scope.
    pub fn admit(
        &self,
        session: &str,
        method: Method,
        params: Option<&RawValue>,
        has_lease: impl Fn(&str) -> bool,
    ) -> Result<(String, Passing), Refusal> {
        if !self.has_session(session) {
            let message = "this link is for another session";
            return Err(Refusal::new(ErrorCode::SessionUnknown, message));
        }
        let Self::Desktop { desktop, .. } = self else {
            let params = params.map_or("{}", RawValue::get);
            // Between the words of JSON a newline means nothing, and within them there is none.
            let line = params.replace(['\n', '\r'], " ");
            let passing = match method {
                Method::ViewOpen => Passing::View,
                _ => Passing::Whole,
            };
            return Ok((line, passing));
        };
        let mut params: Map<String, Value> = match params {
            None => Map::new(),
            Some(params) => serde_json::from_str(params.get()).map_err(|_| {
                handover_protocol::envelope::bad_params(method, "parameters must be an object")
            })?,
        };
        if names(method) == Some(Names::Desktop) {
            let named = params.entry("desktop").or_insert_with(|| json!(desktop));
            if named.as_str() != Some(desktop.as_str()) {
                let message = format!("this link is for {desktop} alone");
                return Err(Refusal::new(ErrorCode::CallerRefused, message));
            }
        }
        // A lease says by itself which desktop it is of, so it must be one of this browser's.
        let lease = params.get("leaseId").filter(|lease| !lease.is_null());
        if lease.is_some_and(|lease| !lease.as_str().is_some_and(has_lease)) {
            let message = "this browser has no such lease";
            return Err(Refusal::new(ErrorCode::LeaseStale, message));
        }
        let passing = match method {
            Method::List => Passing::List,
            Method::Journal => Passing::Events,
            Method::ViewOpen => Passing::View,
            Method::ControlAcquire | Method::ControlReclaim | Method::ControlRequest => {
                Passing::Lease
            }
            _ => Passing::Named,
        };
        Ok((Value::Object(params).to_string(), passing))
    }

    /// Takes what is about others, and where files lie, out of what a host answers.
    pub fn filter(&self, passing: Passing, mut result: Value) -> Value {
        let Self::Desktop { desktop, .. } = self else {
            return result;
        };
        let about =
            |name: &'static str| move |item: &Value| item[name].as_str() == Some(desktop.as_str());
        match passing {
            Passing::List => {
                keep(&mut result["desktops"], about("id"));
                keep(&mut result["requests"], about("desktop"));
                keep(&mut result["agents"], |_| false);
            }
            Passing::Events => keep(&mut result["events"], about("desktop")),
            Passing::Whole | Passing::Named | Passing::View | Passing::Lease => {}
        }
        places::hide(&mut result);
        result
    }

    /// Whether a notification is any of its business.
    pub fn hears(&self, method: &str, params: &RawValue) -> bool {
        #[derive(serde::Deserialize)]
        struct About<'a> {
            #[serde(borrow)]
            desktop: Option<std::borrow::Cow<'a, str>>,
        }
        match self {
            Self::All => true,
            // What is said of a lease is said to who has it.
            Self::Desktop { .. } if method != "event" => true,
            Self::Desktop { desktop, .. } => serde_json::from_str::<About<'_>>(params.get())
                .is_ok_and(|about| about.desktop.as_deref() == Some(desktop.as_str())),
        }
    }

    /// What is shown of a live session: its manifest, or as much of it as is in scope.
    pub fn manifest(&self, manifest: &handover_protocol::Manifest) -> Option<Value> {
        let shown = |value| serde_json::to_value(value).ok();
        let Self::Desktop { session, desktop } = self else {
            return shown(manifest);
        };
        if manifest.session_id != *session {
            return None;
        }
        let mut manifest = manifest.clone();
        manifest.agents.clear();
        manifest.desktops.retain(|known| known.id == *desktop);
        for place in [&mut manifest.project_dir, &mut manifest.socket_path] {
            place.clear();
        }
        manifest.herdr_pane_id = None;
        shown(&manifest)
    }
}

/// Keeps of a list what `wanted` wants; anything else becomes an empty list.
fn keep(list: &mut Value, wanted: impl Fn(&Value) -> bool) {
    match list {
        Value::Array(items) => items.retain(wanted),
        other => *other = json!([]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one() -> Scope {
        Scope::Desktop {
            session: "s1".into(),
            desktop: "d1".into(),
        }
    }

    fn raw(params: &str) -> Box<RawValue> {
        RawValue::from_string(params.to_owned()).unwrap()
    }

    fn admitted(scope: &Scope, method: Method, params: &str) -> Result<Value, ErrorCode> {
        let admitted = scope.admit("s1", method, Some(&raw(params)), |lease| lease == "l-ours");
        let read = |(line, _): (String, _)| serde_json::from_str(&line).unwrap();
        admitted.map(read).map_err(|refusal| refusal.code)
    }

    #[test]
    fn the_methods_of_each_scope() {
        let of = |scope: &Scope| {
            let all = Method::ALL.iter().map(|method| method.name());
            let all: Vec<_> = all.filter(|name| scope.method(name).is_ok()).collect();
            all.join(" ")
        };
        insta::assert_snapshot!(of(&Scope::All), @"list steer abort result subscribe journal control.acquire control.renew control.reclaim control.return control.status control.revoke control.pause control.resume control.request control.give control.refuse control.secret desktop.screenshot desktop.windows view.open request_status answer stop stop_all_input");
        insta::assert_snapshot!(of(&one()), @"list subscribe journal control.acquire control.renew control.reclaim control.return control.status control.revoke control.pause control.resume control.request control.give control.refuse control.secret desktop.screenshot view.open");
        let refusal = one().method("stop").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::MethodUnknown);
        assert_eq!(refusal.data["supported"][0], "list");
        for name in [
            "",
            "hello",
            "List",
            "desktop.click",
            "control.permit",
            "no.such",
        ] {
            assert!(Scope::All.method(name).is_err(), "{name}");
        }
    }

    #[test]
    fn everybody_elses_calls_pass_as_they_are() {
        let params = raw("{\"text\" :\n\"a\\nb\",\r\n\"x\": 1e2}");
        let (line, passing) = Scope::All
            .admit("any", Method::Steer, Some(&params), |_| false)
            .unwrap();
        assert_eq!(line, "{\"text\" : \"a\\nb\",  \"x\": 1e2}");
        assert_eq!(passing, Passing::Whole);
        let (line, passing) = Scope::All
            .admit("any", Method::ViewOpen, None, |_| false)
            .unwrap();
        assert_eq!((line.as_str(), passing), ("{}", Passing::View));
    }

    #[test]
    fn one_desktop_and_no_other() {
        let scope = one();
        let acquire = |params: &str| admitted(&scope, Method::ControlAcquire, params);
        assert_eq!(acquire("{}").unwrap(), json!({"desktop": "d1"}));
        assert_eq!(
            acquire(r#"{"desktop":"d1","note":"x"}"#).unwrap()["note"],
            "x"
        );
        for other in ["\"d2\"", "null", "1", "[\"d1\"]", "\"\""] {
            let named = acquire(&format!("{{\"desktop\":{other}}}"));
            assert_eq!(named, Err(ErrorCode::CallerRefused), "{other}");
        }
        let twice = acquire(r#"{"desktop":"d1","desktop":"d2"}"#);
        assert_eq!(twice, Err(ErrorCode::CallerRefused));
        let turned = acquire(r#"{"desktop":"d2","desktop":"d1"}"#).unwrap();
        assert_eq!(turned, json!({"desktop": "d1"}));
        assert_eq!(acquire("[]"), Err(ErrorCode::BadParams));
        let elsewhere = scope.admit("s2", Method::List, None, |_| true).unwrap_err();
        assert_eq!(elsewhere.code, ErrorCode::SessionUnknown);
    }

    #[test]
    fn a_lease_of_another_desktop_is_out_of_scope() {
        let with = |lease: &str| format!(r#"{{"leaseId":{lease},"token":"t"}}"#);
        for method in Method::ALL
            .iter()
            .filter(|method| names(**method).is_some())
        {
            let theirs = admitted(&one(), *method, &with("\"l-theirs\""));
            assert_eq!(theirs, Err(ErrorCode::LeaseStale), "{method}");
            let odd = admitted(&one(), *method, &with("7"));
            assert_eq!(odd, Err(ErrorCode::LeaseStale), "{method}");
            let ours = admitted(&one(), *method, &with("\"l-ours\""));
            assert!(ours.is_ok(), "{method}");
        }
    }

    #[test]
    fn what_is_about_others_is_left_out() {
        let list = json!({
            "session": "s1",
            "desktops": [{"id": "d1"}, {"id": "d2"}],
            "agents": [{"id": "k7"}],
            "requests": [{"desktop": "d2"}, {"desktop": "d1"}, {}],
        });
        let shown = one().filter(Passing::List, list.clone());
        let expected = json!({
            "session": "s1", "desktops": [{"id": "d1"}], "agents": [],
            "requests": [{"desktop": "d1"}],
        });
        assert_eq!(shown, expected);
        assert_eq!(Scope::All.filter(Passing::List, list.clone()), list);
        let events = json!({"events": [{"seq": 1}, {"seq": 2, "desktop": "d1"}], "next": 2});
        let shown = one().filter(Passing::Events, events);
        assert_eq!(
            shown,
            json!({"events": [{"seq": 2, "desktop": "d1"}], "next": 2})
        );

        let hears = |scope: Scope, method: &str, params: &str| scope.hears(method, &raw(params));
        assert!(hears(one(), "event", r#"{"seq":1,"desktop":"d1"}"#));
        assert!(!hears(one(), "event", r#"{"seq":1,"desktop":"d2"}"#));
        assert!(!hears(
            one(),
            "event",
            r#"{"seq":1,"fields":{"desktop":"d1"}}"#
        ));
        assert!(!hears(one(), "event", "{}"));
        assert!(!hears(one(), "event", "7"));
        assert!(hears(one(), "lease_warning", "{}"));
        assert!(hears(Scope::All, "event", "{}"));
    }

    proptest! {
        /// Whatever a browser of one desktop writes, the host reads its desktop.
        #[test]
        fn the_desktop_is_always_its_own(
            before in "[a-z\",:{}\\[\\] ]{0,20}", after in "[a-z\",:{}\\[\\]0-9 ]{0,20}",
        ) {
            let text = format!("{{{before}\"desktop\":\"d2\"{after}}}");
            if let Ok(params) = RawValue::from_string(text) {
                let admitted =
                    one().admit("s1", Method::DesktopScreenshot, Some(&params), |_| false);
                if let Ok((line, _)) = admitted {
                    let read: Value = serde_json::from_str(&line).unwrap();
                    prop_assert_eq!(&read["desktop"], "d1");
                }
            }
        }
    }
}

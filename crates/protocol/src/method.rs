//! Every method of the wire, with the gate it passes.

use std::fmt;
use std::str::FromStr;

/// How a method relates to the desktops, and so which gate a call passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// It changes a desktop: an agent needs a permit, a person a lease.
    Acts,
    /// It only looks, at a desktop or the record.
    Observes,
    /// It changes the session, but no input reaches a desktop by it.
    Neutral,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $gate:ident, $shape:literal;)*) => {
        /// A method of the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Method {
            $($(#[$doc])* $variant,)*
        }

        impl Method {
            /// Every method, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The gate that a call passes.
            pub const fn gate(self) -> Gate {
                match self { $(Self::$variant => Gate::$gate,)* }
            }

            /// The parameters in short, for messages to callers that got them wrong.
            pub const fn shape(self) -> &'static str {
                match self { $(Self::$variant => $shape,)* }
            }
        }

        impl FromStr for Method {
            type Err = UnknownMethod;

            fn from_str(name: &str) -> Result<Self, UnknownMethod> {
                match name { $($name => Ok(Self::$variant),)* _ => Err(UnknownMethod) }
            }
        }
    };
}

methods! {
    /// Opens the conversation and says who the host takes the caller for.
    Hello = "hello", Neutral, "{client, protocol, as?}";
    /// Answers at once.
    Ping = "ping", Neutral, "{}";
    /// Desktops, agents and open requests of the session.
    List = "list", Observes, "{}";
    /// Starts an agent.
    Spawn = "spawn", Neutral,
        "{driver, prompt, name?, cwd?, parent?, desktop?, display?, args?, env?, caller:{name, token}}";
    /// Sends a message into a running agent.
    Steer = "steer", Neutral, "{id, text, steerId?, when?, wait?, timeoutMs?}";
    /// Ends an agent and its descendants.
    Abort = "abort", Neutral, "{id}";
    /// What an agent came to.
    Result = "result", Observes, "{id}";
    /// Follows the record as it grows.
    Subscribe = "subscribe", Observes, "{since?, kinds?, agent?}";
    /// Reads the record.
    Journal = "journal", Observes, "{since?, limit?, kinds?}";
    /// A person takes control of a desktop.
    ControlAcquire = "control.acquire", Neutral,
        "{desktop?, viewer?, ttlMs?, drainMs?, idleMs?, maxMs?, onDisconnect?, lingerMs?, private?, note?}";
    /// Keeps a lease alive.
    ControlRenew = "control.renew", Neutral, "{leaseId, token}";
    /// Takes up a lease again after its connection was lost.
    ControlReclaim = "control.reclaim", Neutral, "{leaseId, token, viewer?}";
    /// Ends a lease and gives control back.
    ControlReturn = "control.return", Neutral, "{leaseId?, token?, desktop?, reason?, note?}";
    /// Who may act on a desktop.
    ControlStatus = "control.status", Observes, "{desktop?}";
    /// Ends somebody's lease.
    ControlRevoke = "control.revoke", Neutral, "{desktop?, force?}";
    /// Lets nobody act on a desktop.
    ControlPause = "control.pause", Neutral, "{desktop?, force?}";
    /// Ends a pause.
    ControlResume = "control.resume", Neutral, "{desktop?, force?}";
    /// Asks the person in control to hand the desktop over.
    ControlRequest = "control.request", Neutral,
        "{desktop?, viewer?, ttlMs?, drainMs?, idleMs?, maxMs?, onDisconnect?, lingerMs?, private?, note?, waitMs?}";
    /// The holder hands the desktop to the person who asked.
    ControlGive = "control.give", Neutral, "{leaseId, token}";
    /// The holder keeps the desktop.
    ControlRefuse = "control.refuse", Neutral, "{leaseId, token}";
    /// Asks for the right to act once on a desktop by other means.
    ControlPermit = "control.permit", Acts, "{desktop?, what, keeper?}";
    /// Reports the end of the act that a permit was for.
    ControlComplete = "control.complete", Neutral, "{desktop?, permit}";
    /// Types a secret on behalf of the person in control.
    ControlSecret = "control.secret", Acts, "{desktop?, text, leaseId?, token?}";
    /// Makes a desktop.
    DesktopNew = "desktop.new", Acts, "{size?, wm?, attach?, browser?}";
    /// Ends a desktop.
    DesktopDestroy = "desktop.destroy", Acts, "{desktop}";
    /// Starts a program on a desktop.
    DesktopLaunch = "desktop.launch", Acts, "{desktop?, command:[...], cwd?, env?, untrusted?}";
    /// A picture of a desktop.
    DesktopScreenshot = "desktop.screenshot", Observes, "{desktop?, inline?}";
    /// Clicks at a point.
    DesktopClick = "desktop.click", Acts, "{desktop?, x, y, button?}";
    /// Moves the pointer.
    DesktopMove = "desktop.move", Acts, "{desktop?, x, y}";
    /// Clicks twice at a point.
    DesktopDoubleClick = "desktop.double_click", Acts, "{desktop?, x, y, button?}";
    /// Turns the wheel.
    DesktopScroll = "desktop.scroll", Acts, "{desktop?, x?, y?, dx?, dy?}";
    /// Presses at one point and releases at another.
    DesktopDrag = "desktop.drag", Acts, "{desktop?, from:[x,y], to:[x,y], button?}";
    /// Types text.
    DesktopType = "desktop.type", Acts, "{desktop?, text, method?}";
    /// Presses a key or a chord.
    DesktopKey = "desktop.key", Acts, "{desktop?, keys}";
    /// The windows of a desktop.
    DesktopWindows = "desktop.windows", Observes, "{desktop?}";
    /// Makes a socket for one viewer.
    ViewOpen = "view.open", Observes, "{desktop?}";
    /// Makes a socket for one program that drives a desktop's browser; its commands pass the gate.
    CdpOpen = "cdp.open", Neutral, "{desktop?}";
    /// Asks for a person.
    RequestHuman = "request_human", Neutral, "{desktop?, reason, question?}";
    /// How such a request stands.
    RequestStatus = "request_status", Observes, "{requestId, waitMs?}";
    /// Answers such a request in text: a person, or the program that asked for its own person.
    Answer = "answer", Neutral, "{requestId, text}";
    /// Ends the session.
    Stop = "stop", Neutral, "{force?}";
    /// Pauses every desktop and aborts every agent.
    StopAllInput = "stop_all_input", Neutral, "{}";
}

impl Method {
    /// Whether only a person may call it. (`steer`, `abort` and `answer` depend on their
    /// target, too.)
    pub const fn human_only(self) -> bool {
        matches!(
            self,
            Self::ControlAcquire
                | Self::ControlRenew
                | Self::ControlReclaim
                | Self::ControlReturn
                | Self::ControlRevoke
                | Self::ControlPause
                | Self::ControlResume
                | Self::ControlRequest
                | Self::ControlGive
                | Self::ControlRefuse
                | Self::ControlSecret
                | Self::Stop
                | Self::StopAllInput
        )
    }

    /// Whether a program that runs on a desktop may call it: such a program may only look.
    pub const fn open_to_apps(self) -> bool {
        matches!(self.gate(), Gate::Observes) || matches!(self, Self::Hello | Self::Ping)
    }

    /// Whether its parameters carry text or tokens that no error may repeat.
    pub const fn carries_secrets(self) -> bool {
        matches!(
            self,
            Self::DesktopType
                | Self::DesktopKey
                | Self::ControlSecret
                | Self::Steer
                | Self::Spawn
                | Self::Answer
                | Self::ControlRenew
                | Self::ControlReclaim
                | Self::ControlReturn
                | Self::ControlGive
                | Self::ControlRefuse
        )
    }

    /// The names of every method, as `error.data.supported` lists them.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|method| method.name()).collect()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`Method`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method")]
pub struct UnknownMethod;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_declared_gate() {
        let table: Vec<_> = Method::ALL
            .iter()
            .map(|method| {
                let human = if method.human_only() {
                    " human-only"
                } else {
                    ""
                };
                let apps = if method.open_to_apps() { " apps" } else { "" };
                format!("{method} {:?}{human}{apps}", method.gate())
            })
            .collect();
        insta::assert_snapshot!(table.join("\n"), @"
        hello Neutral apps
        ping Neutral apps
        list Observes apps
        spawn Neutral
        steer Neutral
        abort Neutral
        result Observes apps
        subscribe Observes apps
        journal Observes apps
        control.acquire Neutral human-only
        control.renew Neutral human-only
        control.reclaim Neutral human-only
        control.return Neutral human-only
        control.status Observes apps
        control.revoke Neutral human-only
        control.pause Neutral human-only
        control.resume Neutral human-only
        control.request Neutral human-only
        control.give Neutral human-only
        control.refuse Neutral human-only
        control.permit Acts
        control.complete Neutral
        control.secret Acts human-only
        desktop.new Acts
        desktop.destroy Acts
        desktop.launch Acts
        desktop.screenshot Observes apps
        desktop.click Acts
        desktop.move Acts
        desktop.double_click Acts
        desktop.scroll Acts
        desktop.drag Acts
        desktop.type Acts
        desktop.key Acts
        desktop.windows Observes apps
        view.open Observes apps
        cdp.open Neutral
        request_human Neutral
        request_status Observes apps
        answer Neutral
        stop Neutral human-only
        stop_all_input Neutral human-only
        ");
    }

    #[test]
    fn names_read_back() {
        for &method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
    }

    #[test]
    fn no_desktop_method_is_neutral() {
        for method in Method::ALL
            .iter()
            .filter(|m| m.name().starts_with("desktop."))
        {
            assert_ne!(method.gate(), Gate::Neutral, "{method}");
        }
    }
}

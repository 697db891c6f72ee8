//! Which names the server answers to, and which pages may speak to it.
//!
//! A page of another site can make a browser send requests to a loopback address, and its owner can make
//! a name of theirs mean that address (DNS rebinding). The first shows in `Origin`, the second in `Host`.

use std::net::IpAddr;

/// The names under which the server may be reached, besides those of the loopback interface.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Host names in lower case, and addresses.
    names: Vec<String>,
    /// The address that it listens on.
    address: Option<IpAddr>,
    /// Whether it speaks TLS.
    tls: bool,
}

/// Why a request is refused, with the words for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is addressed to somebody else.
    #[error(
        "this is not the name of this console; use the address that it printed, or start it with --host NAME"
    )]
    Host,
    /// It comes from another site's page, or does not say from where.
    #[error("this request does not come from a page of this console")]
    Origin,
}

/// A host as it stands in a request: a name or an address, and its port.
#[derive(Debug, PartialEq, Eq)]
struct Authority<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
}

impl<'a> Authority<'a> {
    /// Reads `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`, and nothing else.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']')?;
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':')?),
                };
                let address = address.parse().ok().map(IpAddr::V6)?;
                (Host::Address(address), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                let address = host.parse().ok().map(IpAddr::V4);
                (
                    address
                        .map_or_else(|| name(host).map(Host::Name), |a| Some(Host::Address(a)))?,
                    port,
                )
            }
        };
        let port = match port {
            // `u16::from_str` takes a sign.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            Some(_) => return None,
            None => None,
        };
        Some(Self { host, port })
    }
}

/// A host name as browsers send it, or nothing.
fn name(text: &str) -> Option<&str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let named = !text.is_empty() && !text.starts_with('.') && !text.ends_with('.');
    (named && text.len() <= 253 && text.bytes().all(allowed)).then_some(text)
}

/// Whether a machine can be called so: by a name or an address, without a port.
pub fn is_host(text: &str) -> bool {
    name(text).is_some() || text.parse::<IpAddr>().is_ok()
}

impl Names {
    /// For a server that listens on `address` and is also called `names`.
    ///
    /// # Errors
    /// The first of `names` that no machine can be called.
    pub fn new(address: IpAddr, names: &[String], tls: bool) -> Result<Self, String> {
        if let Some(wrong) = names.iter().find(|given| !is_host(given)) {
            return Err(wrong.clone());
        }
        Ok(Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            address: Some(address),
            tls,
        })
    }

    /// `http` or `https`.
    pub const fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Checks what a request says of whom it is for and where it comes from. `host` and `origin` are
    /// all the headers of these names; `must_say` is whether the origin must be there, as for all that
    /// is more than reading a page.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check(&self, host: &[&str], origin: &[&str], must_say: bool) -> Result<(), Refused> {
        let &[host] = host else {
            return Err(Refused::Host);
        };
        let authority = Authority::parse(host).ok_or(Refused::Host)?;
        if !self.is_ours(&authority.host) {
            return Err(Refused::Host);
        }
        match origin {
            [] if must_say => Err(Refused::Origin),
            [] => Ok(()),
            [origin] if self.is_same(origin, &authority) => Ok(()),
            _ => Err(Refused::Origin),
        }
    }

    /// Any port will do: a tunnel (`ssh -L`) may have chosen another one.
    fn is_ours(&self, host: &Host<'_>) -> bool {
        match host {
            Host::Name(name) => {
                name.eq_ignore_ascii_case("localhost")
                    || self
                        .names
                        .iter()
                        .any(|ours| ours.eq_ignore_ascii_case(name))
            }
            Host::Address(address) if address.is_loopback() => true,
            // No name can be made to mean something else where there is no name. So where every
            // address is listened on, every address is ours.
            Host::Address(address) => {
                let listens = self.address;
                let is_given = |name: &String| name.parse() == Ok(*address);
                listens.is_some_and(|ours| ours == *address || ours.is_unspecified())
                    || self.names.iter().any(is_given)
            }
        }
    }

    fn is_same(&self, origin: &str, host: &Authority<'_>) -> bool {
        let authority = origin
            .strip_prefix(self.scheme())
            .and_then(|rest| rest.strip_prefix("://"))
            .and_then(Authority::parse);
        let default = if self.tls { 443 } else { 80 };
        authority.is_some_and(|origin| {
            let same_host = match (&origin.host, &host.host) {
                (Host::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other),
                (one, other) => one == other,
            };
            same_host && origin.port.unwrap_or(default) == host.port.unwrap_or(default)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loopback() -> Names {
        let names = ["Desk.example".to_owned()];
        Names::new("127.0.0.1".parse().unwrap(), &names, false).unwrap()
    }

    #[test]
    fn hosts() {
        let names = loopback();
        for ours in [
            "localhost",
            "localhost:7468",
            "LOCALHOST:1",
            "127.0.0.1",
            "127.0.0.1:7468",
            "127.8.8.8:80",
            "[::1]",
            "[::1]:65535",
            "[0:0:0:0:0:0:0:1]:7468",
            "desk.example",
            "DESK.example:443",
        ] {
            assert_eq!(names.check(&[ours], &[], false), Ok(()), "{ours}");
        }
        for other in [
            "",
            "evil.com",
            "localhost.evil.com",
            "localhost.evil.com:7468",
            "localhost.",
            "localhost.:7468",
            ".localhost",
            "127.0.0.1.",
            "127.0.0.1.evil.com",
            "127.0.0.1.nip.io:7468",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0.0.0.0:7468",
            "192.168.1.5:7468",
            "10.0.0.1",
            "[::]:7468",
            "[::ffff:127.0.0.1]:7468",
            "[fe80::1]",
            "::1",
            "[::1",
            "[::1]7468",
            "[::1]:",
            "[127.0.0.1]",
            "localhost:",
            "localhost:+80",
            "localhost:-1",
            "localhost:65536",
            "localhost:80:80",
            "localhost:evil",
            "me@localhost",
            "evil.com@localhost:7468",
            "localhost@evil.com",
            "localhost/evil",
            "localhost?",
            "localhost#",
            "localhost, evil.com",
            "local host",
            " localhost",
            "localhost\t",
            "l\u{f6}calhost",
            "http://localhost",
            "xdesk.example",
            "desk.example.evil.com",
        ] {
            assert_eq!(
                names.check(&[other], &[], false),
                Err(Refused::Host),
                "{other:?}"
            );
        }
        assert_eq!(names.check(&[], &[], false), Err(Refused::Host));
        let twice = ["localhost", "localhost"];
        assert_eq!(names.check(&twice, &[], false), Err(Refused::Host));
    }

    #[test]
    fn addresses_that_are_listened_on() {
        let at = |address: &str, host: &str| {
            let names = Names::new(address.parse().unwrap(), &[], true).unwrap();
            names.check(&[host], &[], false).is_ok()
        };
        let forwarded = ["203.0.113.5".to_owned(), "FD00::7".to_owned()];
        let names = Names::new([127, 0, 0, 1].into(), &forwarded, false).unwrap();
        for host in ["203.0.113.5:80", "[fd00::7]", "127.0.0.1"] {
            assert!(names.check(&[host], &[], false).is_ok(), "{host}");
        }
        assert!(names.check(&["203.0.113.6"], &[], false).is_err());
        assert!(at("192.168.1.5", "192.168.1.5:7468"));
        assert!(!at("192.168.1.5", "192.168.1.6:7468"));
        assert!(at("0.0.0.0", "192.168.1.6:7468"));
        assert!(at("::", "[fd00::7]:7468"));
        assert!(!at("0.0.0.0", "evil.com:7468"));
        assert!(!at("0.0.0.0", "rebound.192.168.1.6.nip.io"));
    }

    #[test]
    fn origins() {
        let names = loopback();
        let host = "localhost:7468";
        for same in ["http://localhost:7468", "http://LOCALHOST:7468"] {
            assert_eq!(names.check(&[host], &[same], true), Ok(()), "{same}");
        }
        for other in [
            "",
            "null",
            "localhost:7468",
            "https://localhost:7468",
            "http://localhost",
            "http://localhost:80",
            "http://localhost:7469",
            "http://127.0.0.1:7468",
            "http://[::1]:7468",
            "http://localhost.evil.com:7468",
            "http://localhost.:7468",
            "http://localhost:7468/",
            "http://localhost:7468/a",
            "http://localhost:7468@evil.com",
            "http://evil.com@localhost:7468",
            "http://localhost:7468 http://evil.com",
            "http://localhost:7468, http://evil.com",
            "HTTP://localhost:7468",
            "ws://localhost:7468",
            "file://",
            "moz-extension://localhost:7468",
            "http://desk.example",
        ] {
            let refused = names.check(&[host], &[other], false);
            assert_eq!(refused, Err(Refused::Origin), "{other:?}");
        }
        assert_eq!(names.check(&[host], &[], true), Err(Refused::Origin));
        assert_eq!(names.check(&[host], &[], false), Ok(()));
        let twice = ["http://localhost:7468"; 2];
        assert_eq!(names.check(&[host], &twice, true), Err(Refused::Origin));
    }

    #[test]
    fn default_ports_are_left_out_by_browsers() {
        let names = loopback();
        assert!(
            names
                .check(&["localhost"], &["http://localhost"], true)
                .is_ok()
        );
        assert!(
            names
                .check(&["localhost:80"], &["http://localhost"], true)
                .is_ok()
        );
        assert!(
            names
                .check(&["localhost"], &["http://localhost:443"], true)
                .is_err()
        );
        let tls = Names::new("::1".parse().unwrap(), &[], true).unwrap();
        assert!(tls.check(&["[::1]"], &["https://[::1]"], true).is_ok());
        assert!(tls.check(&["[::1]:443"], &["https://[::1]"], true).is_ok());
        assert!(tls.check(&["[::1]"], &["http://[::1]"], true).is_err());
    }

    #[test]
    fn names_that_are_none() {
        let address = "127.0.0.1".parse().unwrap();
        for wrong in [
            "",
            "a b",
            "a:80",
            "a.",
            "*",
            "http://a",
            "[::1]",
            "a/b",
            "*.example",
        ] {
            let refused = Names::new(address, &[wrong.to_owned()], false);
            assert_eq!(refused.unwrap_err(), wrong);
        }
    }

    proptest! {
        /// Whatever is sent, only a name that is one of ours by itself passes.
        #[test]
        fn nothing_else_passes(host in "[a-zA-Z0-9.:@\\[\\]/-]{0,40}") {
            if loopback().check(&[&host], &[], false).is_ok() {
                let bare = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                let bare = bare.map_or(host.as_str(), |(bare, _)| bare).to_ascii_lowercase();
                let address = bare.trim_matches(['[', ']']).parse::<IpAddr>();
                prop_assert!(
                    bare == "localhost" || bare == "desk.example"
                        || address.is_ok_and(|address| address.is_loopback()),
                    "{}", host
                );
            }
        }

        #[test]
        fn no_other_origin_passes(origin in "[a-z]{0,6}(://)?[a-z0-9.:@/-]{0,30}") {
            let checked = loopback().check(&["localhost:7468"], &[&origin], true);
            prop_assert_eq!(checked.is_ok(), origin == "http://localhost:7468");
        }
    }
}

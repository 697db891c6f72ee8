//! The windows of applications.

use handover_protocol::Window;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, InputFocus, MapState,
    Window as Id, WindowClass,
};

use super::{Session, X11Error, clients, desk};

/// Longest title that is read, in bytes.
const TITLE_LIMIT: u32 = 1024;
/// Most windows that a window manager's list is read for.
const LIST_LIMIT: u32 = 4096;
/// How deep windows may lie in each other when the one with the focus is sought.
const DEPTH_LIMIT: usize = 64;

struct Atoms {
    client_list: Atom,
    active: Atom,
    name: Atom,
    pid: Atom,
}

impl Atoms {
    fn intern(session: &Session) -> Result<Self, X11Error> {
        let ask = |name: &str| session.connection.intern_atom(false, name.as_bytes());
        let client_list = ask("_NET_CLIENT_LIST")?;
        let active = ask("_NET_ACTIVE_WINDOW")?;
        let name = ask("_NET_WM_NAME")?;
        let pid = ask("_NET_WM_PID")?;
        Ok(Self {
            client_list: client_list.reply()?.atom,
            active: active.reply()?.atom,
            name: name.reply()?.atom,
            pid: pid.reply()?.atom,
        })
    }
}

pub(super) fn list(session: &Session) -> Result<Vec<Window>, X11Error> {
    let atoms = Atoms::intern(session)?;
    let managed = numbers(session, session.root.root, atoms.client_list, LIST_LIMIT)?;
    // A window manager that manages nothing has an empty list; without one there is no property.
    let ids = match managed {
        Some(ids) => ids,
        None => shown(session)?,
    };
    let focused = focused(session, &atoms, &ids)?;
    let mut windows = Vec::with_capacity(ids.len());
    for id in ids {
        match describe(session, &atoms, id, focused == Some(id)) {
            Ok(window) => windows.push(window),
            // It has been closed since.
            Err(X11Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(windows)
}

/// How the windows of a display are looked after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Managed {
    /// By nobody.
    #[default]
    Not,
    /// A window manager places new windows. It has just begun, or is one of those that keep no list.
    Redirected,
    /// A window manager keeps a list of them.
    Listed,
}

/// Who looks after the windows.
pub(super) fn managed(session: &Session) -> Result<Managed, X11Error> {
    let atoms = Atoms::intern(session)?;
    let root = session.root.root;
    if numbers(session, root, atoms.client_list, LIST_LIMIT)?.is_some() {
        return Ok(Managed::Listed);
    }
    let attributes = session.connection.get_window_attributes(root)?.reply()?;
    let all = attributes.all_event_masks;
    Ok(if all.contains(EventMask::SUBSTRUCTURE_REDIRECT) {
        Managed::Redirected
    } else {
        Managed::Not
    })
}

pub(super) fn focus(session: &Session, window: Id) -> Result<(), X11Error> {
    let atoms = Atoms::intern(session)?;
    let root = session.root.root;
    let connection = &session.connection;
    if numbers(session, root, atoms.client_list, 1)?.is_some() {
        // Source 2 is a pager: the window manager does as it is told.
        let ask = ClientMessageEvent::new(32, window, atoms.active, [2, 0, 0, 0, 0]);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        connection.get_window_attributes(window)?.reply()?;
        connection.send_event(false, root, mask, ask)?.check()?;
    } else {
        connection
            .set_input_focus(InputFocus::POINTER_ROOT, window, x11rb::CURRENT_TIME)?
            .check()?;
    }
    desk::sync(session)
}

/// The top-level windows that can be seen, but for menus and the like.
fn shown(session: &Session) -> Result<Vec<Id>, X11Error> {
    let connection = &session.connection;
    let tree = connection.query_tree(session.root.root)?.reply()?;
    let mut shown = Vec::new();
    for id in tree.children {
        // A window may be gone by the time it is asked about.
        let Some(attributes) = gone_is_none(connection.get_window_attributes(id)?.reply())? else {
            continue;
        };
        if attributes.map_state == MapState::VIEWABLE
            && attributes.class == WindowClass::INPUT_OUTPUT
            && !attributes.override_redirect
        {
            shown.push(id);
        }
    }
    Ok(shown)
}

fn gone_is_none<T>(reply: Result<T, x11rb::errors::ReplyError>) -> Result<Option<T>, X11Error> {
    match reply.map_err(X11Error::from) {
        Ok(reply) => Ok(Some(reply)),
        Err(X11Error::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which of `ids` keys go to.
fn focused(session: &Session, atoms: &Atoms, ids: &[Id]) -> Result<Option<Id>, X11Error> {
    let active = numbers(session, session.root.root, atoms.active, 1)?;
    if let Some(&[active]) = active.as_deref()
        && ids.contains(&active)
    {
        return Ok(Some(active));
    }
    // The focus may lie in a window within one of them.
    let mut at = session.connection.get_input_focus()?.reply()?.focus;
    for _ in 0..DEPTH_LIMIT {
        if ids.contains(&at) {
            return Ok(Some(at));
        }
        // None and PointerRoot are no windows.
        if at <= 1 || at == session.root.root {
            return Ok(None);
        }
        match gone_is_none(session.connection.query_tree(at)?.reply())? {
            Some(tree) => at = tree.parent,
            None => return Ok(None),
        }
    }
    Ok(None)
}

fn describe(session: &Session, atoms: &Atoms, id: Id, focused: bool) -> Result<Window, X11Error> {
    let connection = &session.connection;
    let geometry = connection.get_geometry(id)?;
    let place = connection.translate_coordinates(id, session.root.root, 0, 0)?;
    let geometry = geometry.reply()?;
    let place = place.reply()?;
    let pid = match clients::pid_of(session, id) {
        Some(pid) => Some(pid),
        None => numbers(session, id, atoms.pid, 1)?.and_then(|pids| pids.first().copied()),
    };
    Ok(Window {
        id,
        title: title(session, atoms, id)?,
        pid,
        x: place.dst_x.into(),
        y: place.dst_y.into(),
        width: geometry.width.into(),
        height: geometry.height.into(),
        focused,
    })
}

fn title(session: &Session, atoms: &Atoms, id: Id) -> Result<String, X11Error> {
    let read = |property: Atom| {
        session
            .connection
            .get_property(false, id, property, AtomEnum::ANY, 0, TITLE_LIMIT / 4)?
            .reply()
            .map_err(X11Error::from)
    };
    let modern = read(atoms.name)?;
    if !modern.value.is_empty() {
        return Ok(String::from_utf8_lossy(&modern.value).into_owned());
    }
    let old = read(AtomEnum::WM_NAME.into())?;
    if old.type_ == Atom::from(AtomEnum::STRING) {
        return Ok(old.value.iter().map(|&byte| char::from(byte)).collect());
    }
    Ok(String::from_utf8_lossy(&old.value).into_owned())
}

/// The 32-bit values of a property; `None` if there is no such property.
fn numbers(
    session: &Session,
    window: Id,
    property: Atom,
    most: u32,
) -> Result<Option<Vec<u32>>, X11Error> {
    let reply = session
        .connection
        .get_property(false, window, property, AtomEnum::ANY, 0, most)?
        .reply()?;
    Ok(reply.value32().map(Iterator::collect))
}

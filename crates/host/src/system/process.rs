//! Processes by number and by identity. A pid alone may come to mean another process; a pid with
//! its start time, within one boot, never does.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// One line of `/proc/PID/stat`, the fields that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: u32,
    /// Its name as the kernel keeps it: at most 15 bytes, chosen by the process, any bytes at all.
    pub name: String,
    /// One letter; see [`Stat::is_living`].
    pub state: char,
    /// Its parent; 0 for pid 1 and for what entered from outside a container.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session.
    pub session: u32,
    /// Controlling terminal.
    pub terminal: Option<Terminal>,
    /// How many threads it has; 0 while it is collected.
    pub threads: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads a living or dead process's line. `NotFound` if there is no such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        // One read gives the whole line, which is far shorter than this.
        let mut line = [0u8; 1024];
        let length = File::open(format!("/proc/{pid}/stat"))
            .and_then(|mut file| file.read(&mut line))
            .map_err(gone)?;
        Self::parse(&line[..length])
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/PID/stat"))
    }

    /// Parses a line. The name stands in parentheses and may itself contain any byte, so the last
    /// `)` ends it.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let pid = std::str::from_utf8(line.get(..open)?)
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Numbered as in proc(5), where the state is field 3.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            pid,
            name,
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            terminal: Terminal::from_raw(field(7)?.parse().ok()?),
            threads: field(20)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
        })
    }

    /// Whether the process still runs. A zombie does not: where pid 1 reaps nothing it would
    /// otherwise live for ever. One whose first thread alone has ended looks like a zombie, though
    /// its other threads go on.
    pub fn is_living(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }

    /// This process and no later one of the same number.
    pub fn identity(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.start_ticks,
        }
    }
}

/// A controlling terminal, by device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Device major.
    pub major: u32,
    /// Device minor.
    pub minor: u32,
}

impl Terminal {
    fn from_raw(number: i32) -> Option<Self> {
        // The kernel packs a device number for user space: minor in bits 31-20 and 7-0, major in
        // 15-8. It prints it signed.
        let number = number as u32;
        (number != 0).then_some(Self {
            major: (number >> 8) & 0xfff,
            minor: (number & 0xff) | ((number >> 12) & 0xfff00),
        })
    }

    /// The device in this mount namespace, if it is a pseudo-terminal, a console or a serial line.
    pub fn path(self) -> Option<std::path::PathBuf> {
        match (self.major, self.minor) {
            // Unix98 pseudo-terminals have majors 136 to 143, 2^20 minors in all.
            (major @ 136..=143, minor) => {
                Some(format!("/dev/pts/{}", (major - 136) * 256 + minor).into())
            }
            (4, minor @ 1..=63) => Some(format!("/dev/tty{minor}").into()),
            (4, minor @ 64..=255) => Some(format!("/dev/ttyS{}", minor - 64).into()),
            _ => None,
        }
    }
}

/// One process in this boot, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// The process that now has this number.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Stat::of(pid)?.identity())
    }

    /// Ourselves.
    pub fn own() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// Whether this very process still runs. A zombie does not; one of another user does.
    pub fn is_alive(&self) -> bool {
        Stat::of(self.pid).is_ok_and(|stat| stat.identity() == *self && stat.is_living())
    }

    /// A descriptor that stands for this very process and becomes readable when it ends. `NotFound`
    /// if it has ended.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let pid = to_raw(self.pid)?;
        let fd =
            pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| gone(io::Error::from(errno)))?;
        // Looked at after opening: the descriptor's process cannot change any more, so if the number
        // still has our start time now, it had it then.
        if Self::of(self.pid)? == *self {
            Ok(fd)
        } else {
            Err(io::Error::from(io::ErrorKind::NotFound))
        }
    }

    /// Sends `signal` to this very process. `NotFound` if it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let fd = self.open()?;
        pidfd_send_signal(&fd, signal).map_err(|errno| gone(io::Error::from(errno)))
    }
}

/// The kernel's name for this boot; start times compare only within one.
pub fn boot_id() -> io::Result<&'static str> {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    if let Some(id) = BOOT_ID.get() {
        return Ok(id);
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT_ID.get_or_init(|| id.trim().to_owned()))
}

/// Clock ticks a second, the unit of start times: `USER_HZ`, which is the same on every architecture
/// that we can run on, whatever the kernel's own tick.
pub const TICKS_PER_SECOND: u64 = 100;

/// A process and everything above it: `pid` first, then its parent, up to pid 1 or to the first
/// process whose parent is outside this pid namespace.
///
/// Each parent is checked to have started no later than its child; if a process ends or is replaced
/// while we walk, the chain is broken and the answer is `NotFound`.
pub fn ancestry(pid: u32) -> io::Result<Vec<Stat>> {
    // No chain is that long; a bound all the same, since it is read piece by piece.
    const LIMIT: usize = 1024;
    let mut chain = vec![Stat::of(pid)?];
    while let Some(last) = chain.last() {
        if last.parent == 0 || last.pid == 1 {
            return Ok(chain);
        }
        let parent = Stat::of(last.parent)?;
        if parent.start_ticks > last.start_ticks || chain.len() >= LIMIT {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        chain.push(parent);
    }
    Ok(chain)
}

/// Every process there is, zombies included. What ends while we look is left out.
pub fn all() -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Ok(stat) = Stat::of(pid) {
            found.push(stat);
        }
    }
    Ok(found)
}

/// The living processes below `root`, itself not included, parents before their children. One look:
/// a process that forks meanwhile may be missing, so killing a tree means looking again.
pub fn descendants(root: u32) -> io::Result<Vec<Stat>> {
    let mut children: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in all()? {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            // A zombie has no children any more, they went to its reaper.
            if child.is_living() {
                next.push(child.pid);
                found.push(child);
            }
        }
    }
    Ok(found)
}

/// Like [`descendants`], but asking each process for its children instead of every process for its
/// parent: cheap where many others run, and weaker, since a child may be left out when its sibling
/// ends meanwhile. Empty where the kernel does not tell children.
pub fn descendants_by_children(root: u32) -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for child in children(parent) {
            let Ok(stat) = Stat::of(child) else { continue };
            let is_new = found.iter().all(|known| known.pid != child);
            if is_new && stat.is_living() {
                next.push(child);
                found.push(stat);
            }
        }
    }
    found
}

/// The children of a process, zombies included. A child may be left out when its sibling ends
/// meanwhile. Empty where the kernel does not tell children.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    // A child belongs to the thread that made it.
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|line| {
            line.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// The environment a process was started with. Changes that it made to itself are not seen.
/// `PermissionDenied` for a process of another user, or one that forbids dumps.
pub fn environ(pid: u32) -> io::Result<Vec<(String, String)>> {
    let raw = std::fs::read(format!("/proc/{pid}/environ")).map_err(gone);
    let raw = match raw {
        Ok(raw) if !raw.is_empty() => raw,
        // The first thread may have ended before the others, which still have it.
        none => of_a_thread(pid, "environ").map_or(none, Ok)?,
    };
    Ok(raw
        .split(|&byte| byte == 0)
        .filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

/// What the first thread that has something there shows in its file `name`.
fn of_a_thread(pid: u32, name: &str) -> Option<Vec<u8>> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .ok()?
        .filter_map(|thread| std::fs::read(thread.ok()?.path().join(name)).ok())
        .find(|content| !content.is_empty())
}

/// The arguments of a process, as it shows them now.
pub fn command_line(pid: u32) -> io::Result<Vec<String>> {
    let raw = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(gone)?;
    let text = raw.strip_suffix(&[0]).unwrap_or(&raw);
    Ok(text
        .split(|&byte| byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect())
}

/// The real user id of a process.
pub fn owner(pid: u32) -> io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(gone)?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_ascii_whitespace().next()?.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/PID/status"))
}

/// The kernel's pid type; `NotFound` for numbers that no process has.
pub fn to_raw(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// `/proc` answers `ESRCH` or `ENOENT` for a process that has ended, by the moment one asks.
fn gone(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ESRCH) {
        io::Error::from(io::ErrorKind::NotFound)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn parses_a_name_full_of_traps() {
        let line = b"42 (a) Z 1 (b)) S 7 8 9 34816 10 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.name, "a) Z 1 (b)");
        assert_eq!((stat.pid, stat.state, stat.parent), (42, 'S', 7));
        assert_eq!((stat.group, stat.session, stat.threads), (8, 9, 1));
        assert_eq!(stat.start_ticks, 987_654);
        assert_eq!(
            stat.terminal.unwrap().path().unwrap().to_str().unwrap(),
            "/dev/pts/0"
        );
    }

    #[test]
    fn garbage_is_no_process() {
        for line in [
            &b""[..],
            b"()",
            b"1 (x",
            b"1 (x) S",
            b")1 (",
            b"\xff\xff (a) S 1",
        ] {
            assert_eq!(Stat::parse(line), None);
        }
    }

    #[test]
    fn high_terminals_have_their_path() {
        let path = |raw| Terminal::from_raw(raw).and_then(Terminal::path);
        assert_eq!(path(0), None);
        assert_eq!(path(0x8803).unwrap().to_str(), Some("/dev/pts/3"));
        // pts/300: minor 300 = 0x12c, of which the upper bits move to bit 20.
        assert_eq!(path(0x10882c).unwrap().to_str(), Some("/dev/pts/300"));
        assert_eq!(path(0x0401).unwrap().to_str(), Some("/dev/tty1"));
    }

    #[test]
    fn a_zombie_is_dead_and_a_reaped_process_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while identity.is_alive() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert_eq!(Stat::of(child.id()).unwrap().state, 'Z');
        child.wait().unwrap();
        assert_eq!(
            Stat::of(identity.pid).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            identity.signal(Signal::TERM).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_process_lives_until_its_last_thread_has_ended() {
        // The first thread alone ends, while another one has a child.
        let script = "\
import ctypes, subprocess, threading, time
def go_on():
    subprocess.Popen(['sleep', '60'])
    print('ready', flush=True)
    time.sleep(60)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .env("MARK", "yes")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let process = ProcessIdentity::of(child.id()).unwrap();
        let mut said = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        while Stat::of(process.pid).unwrap().state != 'Z' {
            std::thread::yield_now();
        }
        assert!(process.is_alive());
        let below = descendants(std::process::id()).unwrap();
        let sleep = below.iter().find(|stat| stat.parent == process.pid);
        let sleep = sleep.expect("its child is found").identity();
        let mark = ("MARK".to_owned(), "yes".to_owned());
        assert!(environ(process.pid).unwrap().contains(&mark));
        process.signal(Signal::KILL).unwrap();
        sleep.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
    }

    #[test]
    fn another_process_of_the_same_number_is_not_meant() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let real = ProcessIdentity::of(child.id()).unwrap();
        let earlier = ProcessIdentity {
            start_ticks: real.start_ticks - 1,
            ..real
        };
        assert!(!earlier.is_alive());
        assert_eq!(
            earlier.signal(Signal::KILL).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(real.is_alive());
        real.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn finds_grandchildren_and_their_ancestors() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(shell.stdout.take().unwrap()),
            &mut line,
        )
        .unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        let below = descendants(std::process::id()).unwrap();
        assert!(below.iter().any(|stat| stat.pid == grandchild));
        let above: Vec<u32> = ancestry(grandchild)
            .unwrap()
            .iter()
            .map(|s| s.pid)
            .collect();
        assert_eq!(above[..3], [grandchild, shell.id(), std::process::id()]);
        for stat in descendants(shell.id()).unwrap() {
            stat.identity().signal(Signal::KILL).unwrap();
        }
        shell.wait().unwrap();
    }
}

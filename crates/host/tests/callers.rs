//! Callers are told apart by what stands above them, message by message, on real processes.

mod support;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use handover_host::callers::{Caller, CallerKind, Callers, ConnectionId, Evidence};
use handover_host::keeper::Owner;
use handover_host::keeper::client::Keeper;
use handover_host::system::cgroup::Cgroup;
use handover_host::system::clock;
use handover_host::system::creds::CredentialReader;
use handover_protocol::{ErrorCode, Refusal};
use support::{keeper, options, program, shell};
use tokio::net::{UnixListener, UnixStream};

const GRACE: Duration = Duration::from_millis(300);

/// Sends one byte to `sock` in its working directory, then waits.
const CALL: &str = r#"import socket,time; s=socket.socket(socket.AF_UNIX); s.connect("sock"); s.send(b"x"); time.sleep(1000)"#;

struct Server {
    dir: tempfile::TempDir,
    listener: UnixListener,
    callers: Callers,
}

impl Server {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener =
            handover_host::system::socket::bind_private(&dir.path().join("sock")).unwrap();
        Self {
            dir,
            listener: UnixListener::from_std(listener).unwrap(),
            callers: Callers::new(),
        }
    }

    /// Takes one connection and tells who sent its first message.
    async fn caller(&self) -> Result<Caller, Refusal> {
        let (stream, _) = tokio::time::timeout(Duration::from_secs(20), self.listener.accept())
            .await
            .expect("a connection")
            .unwrap();
        let accepted = clock::now();
        let mut reader = CredentialReader::new(Arc::new(stream)).unwrap();
        let (_, sender) = reader.read().await.unwrap().unwrap();
        self.callers.identify(sender, ConnectionId(1), accepted)
    }

    /// A client that is no child of this process, as one that a terminal starts: init's, or that of
    /// whoever collects orphans here.
    fn orphan(&self, env: &[(&str, &str)]) {
        let status = Command::new("setsid")
            .args(["-f", "python3", "-c", CALL])
            .current_dir(self.dir.path())
            .envs(env.iter().copied())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

async fn end(caller: &Caller) {
    let identity = handover_host::system::process::ProcessIdentity {
        pid: caller.pid,
        start_ticks: caller.start_ticks,
    };
    identity.signal(rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_plain_process_is_a_person_by_lineage() {
    let server = Server::new();
    server.orphan(&[]);
    let caller = server.caller().await.unwrap();
    assert!(matches!(
        caller.kind,
        CallerKind::Human {
            evidence: Evidence::Lineage | Evidence::Logind
        }
    ));
    server
        .callers
        .confirm(&caller, "act", Duration::ZERO)
        .await
        .unwrap();
    end(&caller).await;
}

#[tokio::test]
async fn an_agent_programs_mark_needs_a_terminal() {
    let server = Server::new();
    server.orphan(&[("CLAUDECODE", "1")]);
    let caller = server.caller().await.unwrap();
    assert_eq!(caller.marked.as_deref(), Some("CLAUDECODE"));
    let refusal = server
        .callers
        .confirm(&caller, "take control of d1", Duration::from_secs(1))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::CallerRefused);
    assert!(refusal.message.contains("CLAUDECODE"), "{refusal}");
    end(&caller).await;
}

#[tokio::test]
async fn what_runs_on_a_desktop_is_an_app_however_it_hides() {
    let server = Server::new();
    let (keeper, _events) = keeper(server.dir.path()).await;
    let call = format!("exec python3 -c '{CALL}'");
    for script in [
        call.clone(),
        format!("env -i \"$(command -v setsid)\" -f \"$(command -v python3)\" -c '{CALL}'"),
        format!("setsid -f setsid -f python3 -c '{CALL}'; exit 0"),
    ] {
        keeper
            .launch(&shell(server.dir.path(), &script))
            .await
            .unwrap();
        let caller = server.caller().await.unwrap();
        assert_eq!(
            caller.kind,
            CallerKind::App {
                desktop: "d1".into()
            }
        );
        let refusal = server
            .callers
            .confirm(&caller, "act", Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(refusal.code, ErrorCode::CallerRefused);
    }
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn an_app_whose_keeper_was_killed_is_not_a_person() {
    let server = Server::new();
    let (keeper, _events) = keeper(server.dir.path()).await;
    let script =
        format!("while [ -e keeper-d1.sock ]; do sleep 0.02; done; exec python3 -c '{CALL}'");
    keeper
        .launch(&shell(server.dir.path(), &script))
        .await
        .unwrap();
    keeper
        .process()
        .signal(rustix::process::Signal::KILL)
        .unwrap();
    support::ended(keeper.process()).await;
    std::fs::remove_file(server.dir.path().join("keeper-d1.sock")).unwrap();
    let refusal = server.caller().await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::CallerRefused);
    assert_eq!(keeper.kill_leftovers().await, []);
}

#[tokio::test]
async fn below_an_agents_keeper_is_that_agent() {
    let server = Server::new();
    let mut options = options(server.dir.path(), Duration::ZERO);
    options.owner = Owner::Agent("a7".into());
    let (keeper, _events) = Keeper::start(&program(), &options).await.unwrap();
    let call = shell(server.dir.path(), &format!("exec python3 -c '{CALL}'"));
    keeper.launch(&call).await.unwrap();
    // What its keeper says about itself is not enough to be a certain agent.
    assert_eq!(
        server.caller().await.unwrap().kind,
        CallerKind::Agent { id: None }
    );
    server.callers.agent_started(keeper.process(), "a7".into());
    keeper.launch(&call).await.unwrap();
    assert_eq!(
        server.caller().await.unwrap().kind,
        CallerKind::Agent {
            id: Some("a7".into())
        }
    );
    keeper.end(GRACE).await;
}

/// Where a control group can be had, it holds what has neither parent nor environment any more.
#[tokio::test]
async fn what_is_left_in_an_agents_control_group_is_no_person() {
    let server = Server::new();
    let mut options = options(server.dir.path(), Duration::ZERO);
    options.owner = Owner::Agent("a7".into());
    let (keeper, _events) = Keeper::start(&program(), &options).await.unwrap();
    if Cgroup::of(keeper.process()).is_none() {
        eprintln!("skipped: no control group can be made here");
        keeper.end(GRACE).await;
        return;
    }
    server.callers.agent_started(keeper.process(), "a7".into());
    let script = format!(
        "exec env -i \"$(command -v setsid)\" -f \"$(command -v sh)\" -c \
         'while [ -e agent ]; do :; done; exec \"$0\" -c \"$1\"' \"$(command -v python3)\" '{CALL}'"
    );
    std::fs::write(server.dir.path().join("agent"), "").unwrap();
    let launch = shell(server.dir.path(), &script);
    keeper.launch(&launch).await.unwrap();
    keeper
        .process()
        .signal(rustix::process::Signal::KILL)
        .unwrap();
    support::ended(keeper.process()).await;
    std::fs::remove_file(server.dir.path().join("agent")).unwrap();
    let caller = server.caller().await.unwrap();
    let id = Some("a7".into());
    assert_eq!(caller.kind, CallerKind::Agent { id });
    // Once its end is known, it is nobody.
    server.callers.agent_ended(keeper.process());
    let fresh = Callers::new();
    let sender = handover_host::system::creds::Sender {
        pid: caller.pid,
        uid: caller.uid,
        gid: rustix::process::getegid().as_raw(),
    };
    let refusal = fresh.identify(sender, ConnectionId(2), clock::now());
    assert_eq!(refusal.unwrap_err().code, ErrorCode::CallerRefused);
    assert_eq!(keeper.kill_leftovers().await, []);
}

#[tokio::test]
async fn an_inherited_connection_does_not_lend_its_makers_power() {
    let server = Server::new();
    let (keeper, _events) = keeper(server.dir.path()).await;
    // The connection is ours; what writes to it is younger than it.
    let ours = std::os::unix::net::UnixStream::connect(server.dir.path().join("sock")).unwrap();
    let (accepted_stream, _) = server.listener.accept().await.unwrap();
    let accepted = clock::now();
    // Older by more than a tick, which is how exactly the kernel knows the start of a process.
    while clock::now().since(accepted) < Duration::from_millis(25) {
        tokio::task::yield_now().await;
    }
    let mut child = Command::new("sh")
        .args(["-c", "printf x"])
        .stdout(Stdio::from(OwnedFd::from(ours)))
        .spawn()
        .unwrap();
    let mut reader = CredentialReader::new(Arc::new(accepted_stream)).unwrap();
    let (_, sender) = reader.read().await.unwrap().unwrap();
    assert_eq!(sender.pid, child.id());
    let refusal = server
        .callers
        .identify(sender, ConnectionId(1), accepted)
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::CallerRefused);
    child.wait().unwrap();
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can call as somebody else.
    }
    let server = Server::new();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "printf x; exec sleep 1000"])
        .uid(65534)
        .stdout(Stdio::from(OwnedFd::from(theirs.into_std().unwrap())));
    let mut reader = CredentialReader::new(Arc::new(ours)).unwrap();
    let mut child = command.spawn().unwrap();
    let (_, sender) = reader.read().await.unwrap().unwrap();
    assert_eq!(sender.uid, 65534);
    let refusal = server
        .callers
        .identify(sender, ConnectionId(1), clock::now())
        .unwrap_err();
    assert!(refusal.message.contains("65534"), "{refusal}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A terminal of our own with a marked client on it, as an agent's shell in a person's terminal.
struct AtTerminal {
    master: std::fs::File,
    child: Child,
}

impl AtTerminal {
    fn start(server: &Server) -> Self {
        let script = format!(
            r#"import os,pty
pid, fd = pty.fork()
if pid == 0:
    os.environ["CLAUDECODE"] = "1"
    os.execvp("python3", ["python3", "-c", '{CALL}'])
import shutil,sys,threading
def keys():
    while True:
        data = os.read(0, 100)
        if not data: break
        os.write(fd, data)
threading.Thread(target=keys, daemon=True).start()
while True:
    os.write(1, os.read(fd, 1000))
"#
        );
        let (out_read, out_write) = std::io::pipe().unwrap();
        let mut command = Command::new("setsid");
        // Forked off, so that it does not stand below this process, which plays the host.
        command
            .args(["-f", "python3", "-c", &script])
            .current_dir(server.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::from(OwnedFd::from(out_write)))
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        Self {
            master: std::fs::File::from(OwnedFd::from(out_read)),
            child,
        }
    }

    /// Reads what the terminal shows until `text` is there.
    fn wait_for(&mut self, text: &str) {
        let mut seen = Vec::new();
        let mut byte = [0u8; 1];
        while !String::from_utf8_lossy(&seen).contains(text) {
            let timeout = rustix::event::Timespec {
                tv_sec: 20,
                tv_nsec: 0,
            };
            let mut fds = [rustix::event::PollFd::new(
                &self.master,
                rustix::event::PollFlags::IN,
            )];
            assert_eq!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1));
            assert_eq!(self.master.read(&mut byte).unwrap(), 1);
            seen.push(byte[0]);
        }
    }

    fn type_line(&mut self, text: &str) {
        use std::io::Write;
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_the_terminal_decides() {
    for (typed, allowed) in [("yes\n", true), ("no\n", false), ("\n", false)] {
        let server = Arc::new(Server::new());
        let mut terminal = AtTerminal::start(&server);
        let caller = server.caller().await.unwrap();
        assert_eq!(
            caller.kind,
            CallerKind::Human {
                evidence: Evidence::Tty
            }
        );
        assert!(caller.marked.is_some());
        let asking = {
            let (server, caller) = (Arc::clone(&server), caller.clone());
            tokio::spawn(async move {
                server
                    .callers
                    .confirm(&caller, "take control of d1", Duration::from_secs(20))
                    .await
            })
        };
        tokio::task::spawn_blocking(move || {
            terminal.wait_for("take control of d1");
            terminal.wait_for("allow it");
            terminal.type_line(typed);
            terminal.wait_for(if allowed { "allowed" } else { "refused" });
            terminal.child.wait().unwrap();
        })
        .await
        .unwrap();
        assert_eq!(asking.await.unwrap().is_ok(), allowed);
        end(&caller).await;
    }
    let server = Server::new();
    let mut terminal = AtTerminal::start(&server);
    let caller = server.caller().await.unwrap();
    let refusal = server
        .callers
        .confirm(&caller, "act", Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(refusal.message.contains("nobody answered"), "{refusal}");
    end(&caller).await;
    terminal.child.wait().unwrap();
}

//! A keeper keeps its tree: nothing below it gets lost, and nothing is left when it has ended.

mod support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use handover_host::keeper::client::{Keeper, KeeperError, KeeperEvent};
use handover_host::keeper::wire::Exit;
use handover_host::system::process::{self, ProcessIdentity};
use rustix::process::Signal;
use support::{below, ended, eventually, keeper, options, own_memory, pid_in, program, shell};

const GRACE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn launches_reports_exits_and_logs_privately() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, mut events) = keeper(dir.path()).await;
    let launch = shell(dir.path(), "echo $HANDOVER_KEEPER; exit 7");
    let started = keeper.launch(&launch).await.unwrap();
    assert_eq!(
        events.recv().await,
        Some(KeeperEvent::ChildExited {
            pid: started.pid,
            exit: Exit::Code(7)
        })
    );
    let log = dir.path().join("out.log");
    assert_eq!(
        std::fs::read_to_string(&log).unwrap().trim(),
        keeper.marker().1
    );
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut missing = launch.clone();
    missing.command = vec!["no-such-program".into()];
    let error = keeper.launch(&missing).await.unwrap_err().to_string();
    assert!(error.contains("no-such-program"), "{error}");
    let mut elsewhere = launch;
    elsewhere.cwd = dir.path().join("absent");
    let error = keeper.launch(&elsewhere).await.unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");

    assert_eq!(keeper.end(GRACE).await, []);
    ended(keeper.process()).await;
    assert_eq!(events.recv().await, Some(KeeperEvent::Gone));
    assert!(!dir.path().join("keeper-d1.sock").exists());
    assert!(matches!(keeper.status().await, Err(KeeperError::Gone)));
}

/// In a container that was entered from outside, the session began where the container's processes
/// cannot see it, and has the number 0 there.
#[test]
fn starts_in_a_session_that_began_outside_of_its_namespace() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a process namespace of its own needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "sh",
            "-c",
        ])
        // Gives up after 20 s.
        .arg(
            r#""$0" "$@" >ready & n=0
            until [ -s ready ] || [ $((n += 1)) = 400 ]; do sleep 0.05; done
            kill $!; cat ready"#,
        )
        .arg(program().exe)
        .args(["--session", "test", "--desktop", "d1", "--socket"])
        .arg(dir.path().join("keeper-d1.sock"))
        .args(["--orphan-timeout-ms", "60000"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said,
        "ready\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn ends_what_forks_twice_ignores_and_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    let file = |name: &str| dir.path().join(name);
    let scripts = [
        "setsid -f sh -c 'echo $$ > twice; exec sleep 1000'",
        "trap '' TERM; echo $$ > deaf; while :; do sleep 1000; done",
        "echo $$ > stopped; kill -STOP $$; sleep 1000",
        "env -i setsid -f sh -c 'echo $$ > clean; exec sleep 1000'",
    ];
    for script in scripts {
        keeper.launch(&shell(dir.path(), script)).await.unwrap();
    }
    let mut processes = Vec::new();
    for name in ["twice", "deaf", "stopped", "clean"] {
        processes.push(pid_in(&file(name)).await);
    }
    for process in &processes {
        assert!(below(keeper.process()).contains(&process.pid));
    }
    assert_eq!(keeper.end(GRACE).await, []);
    for process in processes {
        assert!(!process.is_alive());
    }
}

#[tokio::test]
async fn a_fork_storm_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    let script = "trap '' TERM; echo $$ > storm; while :; do setsid -f sleep 0.3; done";
    keeper.launch(&shell(dir.path(), script)).await.unwrap();
    pid_in(&dir.path().join("storm")).await;
    assert_eq!(keeper.end(Duration::from_millis(50)).await, []);
    let marker = keeper.marker().1;
    let left = process::all().unwrap().into_iter().find(|stat| {
        stat.is_living()
            && process::environ(stat.pid)
                .is_ok_and(|environ| environ.iter().any(|(_, value)| *value == marker))
    });
    assert_eq!(left, None);
}

#[tokio::test]
async fn goes_on_without_a_host_and_is_adopted_only_as_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _events) = keeper(dir.path()).await;
    let process = first.process();
    let kept = first
        .launch(&shell(dir.path(), "exec sleep 1000"))
        .await
        .unwrap();
    drop(first);

    let socket = dir.path().join("keeper-d1.sock");
    let boot = process::boot_id().unwrap();
    let other = ProcessIdentity::own().unwrap();
    assert!(matches!(
        Keeper::adopt(&socket, other, boot).await,
        Err(KeeperError::NotTheOne { .. })
    ));
    let earlier = ProcessIdentity {
        start_ticks: process.start_ticks - 1,
        ..process
    };
    for (identity, boot) in [(earlier, boot), (process, "another boot")] {
        assert!(matches!(
            Keeper::adopt(&socket, identity, boot).await,
            Err(KeeperError::Gone)
        ));
    }
    let (second, _events) = Keeper::adopt(&socket, process, boot).await.unwrap();
    let status = second.status().await.unwrap();
    assert_eq!(status.keeper, process);
    assert!(status.descendants.contains(&kept));
    assert_eq!(second.end(GRACE).await, []);
    ended(process).await;
}

#[tokio::test]
async fn ends_by_itself_when_no_host_comes() {
    let dir = tempfile::tempdir().unwrap();
    // Zero is what an agent's keeper has: it ends with its host.
    let (keeper, _events) = Keeper::start(&program(), &options(dir.path(), Duration::ZERO))
        .await
        .unwrap();
    let process = keeper.process();
    let kept = keeper
        .launch(&shell(dir.path(), "exec sleep 1000"))
        .await
        .unwrap();
    drop(keeper);
    ended(process).await;
    assert!(!kept.is_alive());
    assert!(!dir.path().join("keeper-d1.sock").exists());
}

#[tokio::test]
async fn what_a_killed_keeper_leaves_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, mut events) = keeper(dir.path()).await;
    let server = keeper
        .start_server(&shell(dir.path(), "exec sleep 1000"), None)
        .await
        .unwrap();
    assert!(matches!(
        keeper.start_server(&shell(dir.path(), "true"), None).await,
        Err(KeeperError::Refused(_))
    ));
    let scripts = [
        "setsid -f sh -c 'echo $$ > marked; exec sleep 1000'",
        "env -i setsid -f sh -c 'echo $$ > clean; exec sleep 1000'",
    ];
    for script in scripts {
        keeper.launch(&shell(dir.path(), script)).await.unwrap();
    }
    let marked = pid_in(&dir.path().join("marked")).await;
    let clean = pid_in(&dir.path().join("clean")).await;
    // A look at the tree, as the host takes one every few seconds.
    keeper.status().await.unwrap();
    assert_eq!(keeper.kill_leftovers().await, [], "the keeper lives");
    assert!(marked.is_alive() && clean.is_alive());

    keeper.process().signal(Signal::KILL).unwrap();
    while events.recv().await != Some(KeeperEvent::Gone) {}
    ended(server).await;
    assert_eq!(keeper.kill_leftovers().await, []);
    assert!(!marked.is_alive() && !clean.is_alive());
}

#[tokio::test]
async fn a_tree_has_a_control_group_where_one_can_be_made() {
    let dir = tempfile::tempdir().unwrap();
    let group = |process: ProcessIdentity| {
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).unwrap();
        let own = text.lines().find_map(|line| line.strip_prefix("0::"));
        own.unwrap_or_default().to_owned()
    };
    for killed in [false, true] {
        let (keeper, mut events) = keeper(dir.path()).await;
        let own = group(keeper.process());
        if own == group(ProcessIdentity::own().unwrap()) {
            eprintln!("skipped: no part of the control groups is ours to divide");
            keeper.end(GRACE).await;
            return;
        }
        let kept = keeper
            .launch(&shell(dir.path(), "exec sleep 1000"))
            .await
            .unwrap();
        assert_eq!(group(kept), own);
        if killed {
            keeper.process().signal(Signal::KILL).unwrap();
            while events.recv().await != Some(KeeperEvent::Gone) {}
            assert_eq!(keeper.kill_leftovers().await, []);
        } else {
            assert_eq!(keeper.end(GRACE).await, []);
        }
        assert!(!kept.is_alive());
        for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
            let left = std::path::Path::new(mount).join(own.trim_start_matches('/'));
            assert!(!left.exists(), "{}", left.display());
        }
    }
}

#[tokio::test]
async fn what_a_keeper_leaves_without_a_host_is_killed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _events) = keeper(dir.path()).await;
    let keeper = first.process();
    let boot = process::boot_id().unwrap();
    first
        .launch(&shell(dir.path(), "echo $$ > kept; exec sleep 1000"))
        .await
        .unwrap();
    let kept = pid_in(&dir.path().join("kept")).await;
    drop(first);
    assert_eq!(Keeper::kill_leftovers_of(keeper, boot).await, []);
    assert!(kept.is_alive(), "the keeper lives");
    keeper.signal(Signal::KILL).unwrap();
    ended(keeper).await;
    assert_eq!(Keeper::kill_leftovers_of(keeper, "another boot").await, []);
    assert!(kept.is_alive(), "processes of another boot are no more");
    assert_eq!(Keeper::kill_leftovers_of(keeper, boot).await, []);
    assert!(!kept.is_alive());
}

#[tokio::test]
async fn a_stopped_keeper_delays_nobody_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    keeper.process().signal(Signal::STOP).unwrap();
    assert!(matches!(
        keeper.status().await,
        Err(KeeperError::Timeout(_))
    ));
    keeper.process().signal(Signal::CONT).unwrap();
    keeper.status().await.unwrap();
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn what_runs_below_cannot_command_it() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    let script = r#"exec python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("keeper-d1.sock")
try:
    s.sendall(b"{\"id\":1,\"request\":{\"do\":\"status\"}}\n")
    answer = s.recv(100)
except OSError:
    answer = b""
open("answer.tmp", "w").write("%d\n" % len(answer))
import os
os.rename("answer.tmp", "answer")
'"#;
    keeper.launch(&shell(dir.path(), script)).await.unwrap();
    let answer = eventually("the client should have an answer", || {
        std::fs::read_to_string(dir.path().join("answer")).ok()
    })
    .await;
    assert_eq!(answer, "0\n");
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn is_small_and_holds_nothing_of_its_starter_open() {
    let dir = tempfile::tempdir().unwrap();
    let (mut read_end, write_end) = std::io::pipe().unwrap();
    // As a build runner's pipe would be inherited.
    rustix::io::fcntl_setfd(&write_end, rustix::io::FdFlags::empty()).unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    drop(write_end);
    let mut rest = Vec::new();
    read_end.read_to_end(&mut rest).unwrap();

    let stat = process::Stat::of(keeper.process().pid).unwrap();
    assert_eq!(stat.name, "handover-keeper");
    assert_eq!(stat.session, stat.pid, "a session of its own");
    let resident = own_memory(keeper.process());
    assert!(resident < 2048, "{resident} KiB of its own memory");
    keeper.end(GRACE).await;
}

//! A program's standard streams in the host's hands: they carry every byte, end when they should, and
//! belong to one program only.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use handover_host::keeper::client::{Keeper, KeeperError};
use handover_host::keeper::pipes::{Piped, Pipes};
use handover_host::keeper::wire::Fifos;
use handover_host::system::process::ProcessIdentity;
use rustix::process::Signal;
use support::{ended, keeper, options, pid_in, program, shell};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const GRACE: Duration = Duration::from_millis(300);

/// No answer takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory in which pipes may be made.
fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

async fn piped(keeper: &Keeper, dir: &Path, script: &str) -> (ProcessIdentity, Piped) {
    keeper
        .launch_piped(&shell(dir, script), Pipes::make(dir).unwrap())
        .await
        .unwrap()
}

/// All that is left in a stream, until it ends.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text))
        .await
        .expect("the stream should end")
        .unwrap();
    text
}

#[tokio::test]
async fn every_byte_goes_round_and_the_end_of_input_is_the_end() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    let (cat, mut streams) = piped(&keeper, dir.path(), "echo over >&2; exec cat").await;
    // More than any pipe holds: both directions go on at once.
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut stdin = streams.stdin;
    let writing = {
        let sent = sent.clone();
        tokio::spawn(async move { stdin.write_all(&sent).await })
    };
    let mut received = vec![0u8; sent.len()];
    timeout(PATIENCE, streams.stdout.read_exact(&mut received))
        .await
        .expect("the bytes should come back")
        .unwrap();
    assert!(received == sent);
    writing.await.unwrap().unwrap();
    // The task has dropped the writer.
    assert_eq!(rest(&mut streams.stdout).await, "");
    assert_eq!(rest(&mut streams.stderr).await, "over\n");
    ended(cat).await;
    assert!(!dir.path().join("out.log").exists());
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn private_and_without_a_name_once_the_program_runs() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    let pipes = Pipes::make(dir.path());
    rustix::process::umask(before);
    let pipes = pipes.unwrap();
    let Fifos {
        stdin,
        stdout,
        stderr,
    } = pipes.fifos().clone();
    let names = [stdin, stdout, stderr];
    for name in &names {
        let mode = std::fs::metadata(name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mut missing = shell(dir.path(), "");
    missing.command = vec!["no-such-program".into()];
    let second = Pipes::make(dir.path()).unwrap();
    assert!(matches!(
        keeper.launch_piped(&missing, second).await,
        Err(KeeperError::Refused(_))
    ));
    keeper
        .launch_piped(&shell(dir.path(), "exec cat"), pipes)
        .await
        .unwrap();
    let left = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
    keeper.end(GRACE).await;

    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Pipes::make(&open).unwrap_err().to_string();
    assert!(error.contains("chmod 0700"), "{error}");
}

#[tokio::test]
async fn output_ends_when_the_last_writer_of_the_tree_has_gone() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    let script = "setsid -f sh -c 'echo $$ > twice; while [ ! -e go ]; do sleep 0.01; done;
        echo late; exec sleep 1000'; echo early";
    let (first, mut streams) = piped(&keeper, dir.path(), script).await;
    let twice = pid_in(&dir.path().join("twice")).await;
    ended(first).await;
    let mut line = [0u8; 6];
    streams.stdout.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"early\n");
    std::fs::write(dir.path().join("go"), b"").unwrap();
    let mut line = [0u8; 5];
    timeout(PATIENCE, streams.stdout.read_exact(&mut line))
        .await
        .expect("the program that is left still writes")
        .unwrap();
    assert_eq!(&line, b"late\n");
    twice.signal(Signal::KILL).unwrap();
    assert_eq!(rest(&mut streams.stdout).await, "");
    ended(twice).await;
    // Nobody reads any more: writing says so instead of filling the pipe.
    let error = streams.stdin.write_all(b"anybody?").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn what_never_reads_or_has_ended_holds_nobody_up() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    let (deaf, mut streams) = piped(&keeper, dir.path(), "exec sleep 1000").await;
    let text = vec![b'x'; 1 << 20];
    let full = timeout(Duration::from_millis(100), streams.stdin.write_all(&text)).await;
    assert!(full.is_err(), "a pipe holds less than this");
    // Meanwhile others are launched, and one that is over before anybody reads loses nothing.
    let (brief, mut other) = piped(&keeper, dir.path(), "echo hello").await;
    ended(brief).await;
    assert_eq!(rest(&mut other.stdout).await, "hello\n");
    deaf.signal(Signal::KILL).unwrap();
    assert_eq!(rest(&mut streams.stdout).await, "");
    assert!(streams.stdin.write_all(&text).await.is_err());
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn a_keeper_never_waits_for_the_other_end() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    // As if the host had died between the making and the launch: nobody holds the other ends.
    let [stdin, stdout, stderr] = ["in", "out", "err"].map(|name| dir.path().join(name));
    for name in [&stdin, &stdout, &stderr] {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, name, mode).unwrap();
    }
    let mut launch = shell(dir.path(), "exec cat");
    launch.stdio = Some(Fifos {
        stdin,
        stdout: stdout.clone(),
        stderr,
    });
    let error = keeper.launch(&launch).await.unwrap_err().to_string();
    assert!(error.contains(stdout.to_str().unwrap()), "{error}");
    keeper.status().await.unwrap();
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn fifty_programs_share_no_pipe() {
    let dir = private_dir();
    let (keeper, _events) = keeper(dir.path()).await;
    let mut programs = Vec::new();
    for _ in 0..50 {
        let (cat, streams) = piped(&keeper, dir.path(), "exec cat").await;
        // Its own three and nothing of the keeper's or of another program's.
        let mut open: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", cat.pid))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        open.sort();
        assert_eq!(open[..3], ["0", "1", "2"]);
        programs.push((cat, streams));
    }
    for (number, (_, streams)) in programs.iter_mut().enumerate() {
        let text = format!("for {number}\n");
        streams.stdin.write_all(text.as_bytes()).await.unwrap();
    }
    // In the middle first: the end of one input is the end of that program only.
    programs.rotate_left(25);
    for (number, (cat, mut streams)) in (0..50).map(|n| (n + 25) % 50).zip(programs) {
        drop(streams.stdin);
        assert_eq!(rest(&mut streams.stdout).await, format!("for {number}\n"));
        ended(cat).await;
    }
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn a_tree_ends_with_its_hosts_connection() {
    let dir = private_dir();
    let (keeper, _events) = Keeper::start(&program(), &options(dir.path(), Duration::ZERO))
        .await
        .unwrap();
    let own = keeper.process();
    let script = "setsid -f sh -c 'echo $$ > twice; exec sleep 1000'; exec sleep 1000";
    let (first, mut streams) = piped(&keeper, dir.path(), script).await;
    let twice = pid_in(&dir.path().join("twice")).await;
    drop(keeper);
    for process in [own, first, twice] {
        ended(process).await;
    }
    assert_eq!(rest(&mut streams.stdout).await, "");
}

/// Set for the process that plays the host which is killed: the directory it plays in.
const PLAYS_HOST: &str = "HANDOVER_TEST_PLAYS_HOST";

#[tokio::test]
async fn a_killed_host_leaves_no_program_behind() {
    if let Some(dir) = std::env::var_os(PLAYS_HOST) {
        return play_host(Path::new(&dir)).await;
    }
    let dir = private_dir();
    let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_host_leaves_no_program_behind"])
        .env(PLAYS_HOST, dir.path())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let deaf = pid_in(&dir.path().join("deaf")).await;
    let keeper = pid_in(&dir.path().join("keeper")).await;
    // Waits for its end too.
    host.kill().await.unwrap();
    for process in [deaf, keeper] {
        ended(process).await;
    }
}

/// Starts a program that minds neither the end of its input nor TERM, and waits to be killed.
async fn play_host(dir: &Path) {
    let (keeper, _events) = Keeper::start(&program(), &options(dir, Duration::ZERO))
        .await
        .unwrap();
    let script = "trap '' TERM; echo $$ > deaf; while :; do sleep 1000; done";
    let _streams = piped(&keeper, dir, script).await;
    std::fs::write(dir.join("keeper"), format!("{}\n", keeper.process().pid)).unwrap();
    std::future::pending::<()>().await;
}

//! A tool server behind `handover relay`, and the same server run directly, in turns.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Outcome,
    figures::{Row, Samples, median},
    rows::takeover::{acquire, give_back, until_active},
    session::Session,
    wire::Wire,
};

/// The first argument with which this program is the server.
pub const SERVE: &str = "--serve";

/// The text in a large record, in bytes.
const LARGE: usize = 1 << 20;
/// Large records in one turn.
const RECORDS: usize = 16;
/// Turns by each way.
const TURNS: usize = 15;
/// Takeovers while a call is under way.
const TAKEOVERS: usize = 100;

/// A tool that works until it is cancelled, and then answers at once.
const WORK: &str = "work";
/// What the server says when it has begun to work.
const BEGUN: &str = "notifications/message";

/// What a call costs more, and how much of the throughput is left.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let server = std::env::current_exe()?;
    let mut direct = Client::start(Command::new(&server).arg(SERVE))?;
    let mut command = session.place().handover()?;
    command.args(["relay", "--"]).arg(&server).arg(SERVE);
    let mut relayed = Client::start(&mut command)?;

    let mut directly = Samples::default();
    let through = Samples::take(2000, || {
        directly.push(direct.call()?);
        relayed.call()
    })?;
    let added = through.median().saturating_sub(directly.median());

    let (mut shares, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let alone = direct.large()?;
        let rate = relayed.large()?;
        shares.push(rate / alone);
        rates.push(rate);
    }
    let (person, agent) = (session.wire()?, session.wire()?);
    let granted = Samples::take(TAKEOVERS, || grant(&mut relayed, &person, &agent))?;
    Ok(vec![
        Row::times("call of a tool, server run directly", directly),
        Row::times("call of a tool through the relay", through),
        Row::number(
            "call of a tool, added by the relay",
            added.as_secs_f64() * 1e3,
            "ms",
        )
        .less_than(0.3),
        Row::number("1 MiB records through the relay", median(rates), "MiB/s"),
        Row::number(
            "1 MiB records through the relay, share of direct",
            median(shares),
            "",
        )
        .at_least(0.7),
        Row::times("acquire, a relayed call is under way", granted)
            .below(Duration::from_millis(100)),
    ])
}

/// A takeover while a well-behaved call is under way, from the request to the grant.
fn grant(relayed: &mut Client, person: &Wire, agent: &Wire) -> Outcome<Duration> {
    let record = relayed.record(WORK, "");
    relayed.write(&record)?;
    relayed.read(BEGUN)?;
    let started = Instant::now();
    let lease = acquire(person)?;
    let took = started.elapsed();
    relayed.read("interrupted_by_human")?;
    give_back(person, &lease)?;
    until_active(agent)?;
    Ok(took)
}

/// An MCP client of the least kind; its server is killed when it is dropped.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn start(command: &mut Command) -> Outcome<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn()?;
        let input = server.stdin.take();
        let output = server.stdout.take().ok_or("no output")?;
        let output = BufReader::with_capacity(128 << 10, output);
        let last = 0;
        let mut client = Self {
            server,
            input,
            output,
            last,
        };
        client.call()?;
        Ok(client)
    }

    fn record(&mut self, tool: &str, text: &str) -> String {
        self.last += 1;
        let params = json!({"name": tool, "arguments": {"text": text}});
        let call = json!({
            "jsonrpc": "2.0", "id": self.last, "method": "tools/call", "params": params,
        });
        format!("{call}\n")
    }

    /// One small call, from the request to its answer.
    fn call(&mut self) -> Outcome<Duration> {
        let record = self.record("echo", "x");
        let started = Instant::now();
        self.write(&record)?;
        self.read("\"result\"")?;
        Ok(started.elapsed())
    }

    fn write(&mut self, record: &str) -> Outcome<()> {
        let input = self.input.as_mut().ok_or("no input")?;
        Ok(input.write_all(record.as_bytes())?)
    }

    /// Reads the next record, which must have `text` in it.
    fn read(&mut self, text: &str) -> Outcome<()> {
        let mut record = String::new();
        self.output.read_line(&mut record)?;
        if record.contains(text) {
            Ok(())
        } else {
            Err(format!("no {text}: {record}").into())
        }
    }

    /// Large calls whose answers are as large, in MiB a second and direction.
    fn large(&mut self) -> Outcome<f64> {
        let text = "x".repeat(LARGE);
        let records: Vec<String> = (0..RECORDS).map(|_| self.record("echo", &text)).collect();
        let mut input = self.input.take().ok_or("no input")?;
        let started = Instant::now();
        let writer = thread::spawn(move || {
            let written = records
                .iter()
                .try_for_each(|record| input.write_all(record.as_bytes()));
            written.map(|()| input)
        });
        let mut answer = Vec::new();
        for _ in 0..RECORDS {
            answer.clear();
            self.output.read_until(b'\n', &mut answer)?;
            if answer.len() < LARGE {
                return Err("an answer is too short".into());
            }
        }
        let took = started.elapsed();
        let written = writer.join().map_err(|_| "the writer has failed")?;
        self.input = Some(written?);
        Ok((RECORDS * LARGE) as f64 / (1 << 20) as f64 / took.as_secs_f64())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Is the server: answers each call with its arguments, but for one that works until it is cancelled.
pub fn serve() -> ExitCode {
    let served = || -> Outcome<()> {
        let mut input = BufReader::with_capacity(128 << 10, std::io::stdin().lock());
        let mut output = std::io::stdout().lock();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            let mut request: Value = serde_json::from_slice(&line)?;
            let answer = if request["method"] == "notifications/cancelled" {
                let error = json!({"code": 0, "message": "cancelled"});
                json!({"jsonrpc": "2.0", "id": request["params"]["requestId"], "error": error})
            } else if request["params"]["name"] == WORK {
                json!({"jsonrpc": "2.0", "method": BEGUN, "params": {"level": "info", "data": ""}})
            } else {
                let arguments = request["params"]["arguments"].take();
                json!({"jsonrpc": "2.0", "id": request["id"], "result": arguments})
            };
            let mut answer = serde_json::to_vec(&answer)?;
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
            line.clear();
        }
        Ok(())
    };
    match served() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

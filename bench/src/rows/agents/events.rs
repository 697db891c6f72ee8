//! Events to those who follow.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use handover_protocol::{
    Gap, Method, SubscribeParams, SubscribeResult,
    envelope::{Incoming, request_line},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    runtime::Builder,
    sync::watch,
    task::JoinSet,
};

use super::{session, steerable};
use crate::{Outcome, figures::Row, wire::Wire};

/// How many follow, and how many events a second are stored meanwhile.
const RUNS: [(usize, u64); 3] = [(1, 10_000), (100, 1_500), (1000, 150)];

/// How long they are.
const SECONDS: u64 = 4;

/// How long the last of them may take to arrive.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes that a follower reads at once.
const PART: usize = 64 << 10;

/// Where in its line the method of a notification begins.
const METHOD: usize = br#"{"jsonrpc":"2.0","method":""#.len();

/// Events that arrive in a second at all followers together, and the share that came as gaps.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = session(4)?;
    let wire = session.wire()?;
    let agent = steerable(&wire, 1)?.swap_remove(0);
    raise_open_files(2048)?;
    let mut rows = Vec::new();
    for (followers, pace) in RUNS {
        let told = follow(&session.socket()?, &wire, &agent, followers, pace)?;
        let name = format!("events a second to {followers} subscribers, of {pace} stored");
        let rate = told.events as f64 / told.took.as_secs_f64();
        let mut row = Row::number(name, rate, "");
        if followers == 100 {
            row = row.at_least(100_000.0);
        }
        let share = told.missed as f64 / (told.events + told.missed) as f64;
        rows.push(row);
        rows.push(Row::number("  share that came as declared gaps", share, ""));
    }
    Ok(rows)
}

/// What all followers together were told.
struct Told {
    events: u64,
    /// Named in gaps.
    missed: u64,
    /// From the request for the events until the last follower had the last of them.
    took: Duration,
}

fn follow(socket: &Path, wire: &Wire, agent: &str, count: usize, pace: u64) -> Outcome<Told> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let (last, to) = watch::channel(u64::MAX);
    let mut following = JoinSet::new();
    let mut first = u64::MAX;
    for _ in 0..count {
        let follower = runtime.block_on(Follower::subscribe(socket))?;
        first = first.min(follower.seen);
        following.spawn_on(follower.follow(to.clone()), runtime.handle());
    }
    let started = Instant::now();
    let text = format!("flood {} {pace}", SECONDS * pace);
    wire.call(Method::Steer, json!({"id": agent, "text": text}))?;
    // The program takes up one message after the other.
    let wait =
        json!({"id": agent, "text": "is that all?", "wait": "answered", "timeoutMs": 14_000});
    let answered = wire.call(Method::Steer, wait)?;
    if answered["state"] != "answered" {
        return Err(format!("the agent has not said all: {answered}").into());
    }
    let all = json!({"since": first, "limit": 1, "kinds": ["none"]});
    let head = wire.call(Method::Journal, all)?["next"].as_u64();
    last.send_replace(head.ok_or("the journal has no end")?);
    let (mut events, mut missed) = (0, 0);
    runtime.block_on(async {
        while let Some(ended) = tokio::time::timeout(LIMIT, following.join_next()).await? {
            let follower = ended??;
            events += follower.events;
            missed += follower.missed;
        }
        Ok::<_, crate::Failure>(())
    })?;
    if events + missed < count as u64 * SECONDS * pace {
        return Err(format!("only {events} events and {missed} in gaps were told").into());
    }
    Ok(Told {
        events,
        missed,
        took: started.elapsed(),
    })
}

/// One connection that follows.
struct Follower {
    stream: UnixStream,
    /// What has no newline yet.
    rest: Vec<u8>,
    began: u64,
    seen: u64,
    events: u64,
    missed: u64,
}

impl Follower {
    async fn subscribe(socket: &Path) -> Outcome<Self> {
        let mut stream = UnixStream::connect(socket).await?;
        let all = SubscribeParams::default();
        let line = request_line(&1.into(), Method::Subscribe.name(), &all)?;
        stream.write_all(&line).await?;
        let mut rest = Vec::new();
        let end = loop {
            if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                break end;
            }
            if stream.read_buf(&mut rest).await? == 0 {
                return Err("the host closed the connection".into());
            }
        };
        let answer: Vec<u8> = rest.drain(..=end).collect();
        let Ok(Incoming::Answer { outcome, .. }) = Incoming::parse(&answer) else {
            return Err("no answer to `subscribe`".into());
        };
        let seen = SubscribeResult::deserialize(outcome?)?.cursor;
        Ok(Self {
            stream,
            rest,
            began: seen,
            seen,
            events: 0,
            missed: 0,
        })
    }

    /// Reads until it has everything up to what `last` says.
    async fn follow(mut self, mut last: watch::Receiver<u64>) -> Outcome<Self> {
        let mut part = vec![0; PART];
        while self.seen < *last.borrow_and_update() {
            tokio::select! {
                read = self.stream.read(&mut part) => match read? {
                    0 => return Err("the host closed the connection".into()),
                    length => self.take(&part[..length])?,
                },
                changed = last.changed() => changed?,
            }
        }
        // Whoever is told nothing of an event must be told of its gap.
        if self.events + self.missed != self.seen - self.began {
            let (seen, began) = (self.seen, self.began);
            let told = format!("{} events and {} in gaps", self.events, self.missed);
            return Err(format!("{told} between numbers {began} and {seen}").into());
        }
        Ok(self)
    }

    /// Counts lines, and reads those that say more than that there was an event. A thousand followers
    /// share the machine with the host that is measured, so they do no more than needed.
    fn take(&mut self, part: &[u8]) -> Outcome<()> {
        let Some(end) = part.iter().rposition(|&byte| byte == b'\n') else {
            self.rest.extend_from_slice(part);
            return Ok(());
        };
        self.rest.extend_from_slice(&part[..end]);
        let whole = std::mem::replace(&mut self.rest, part[end + 1..].to_vec());
        let mut event = None;
        for line in whole.split(|&byte| byte == b'\n') {
            if line.get(METHOD) == Some(&b'g') {
                let gap = Gap::deserialize(params(line)?)?;
                self.missed += gap.to + 1 - gap.from;
                self.seen = gap.to;
                event = None;
            } else {
                self.events += 1;
                event = Some(line);
            }
        }
        if let Some(line) = event {
            self.seen = params(line)?["seq"]
                .as_u64()
                .ok_or("an event without a number")?;
        }
        Ok(())
    }
}

fn params(line: &[u8]) -> Outcome<Value> {
    match Incoming::parse(line)? {
        Incoming::Notification { params, .. } => Ok(params),
        Incoming::Answer { .. } => Err("an answer without a request".into()),
    }
}

/// Lets this process have as many connections.
fn raise_open_files(wanted: u64) -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(())
}

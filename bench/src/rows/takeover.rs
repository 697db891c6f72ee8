//! Asking for control and giving it back.

use std::{
    thread,
    time::{Duration, Instant},
};

use handover_protocol::{ErrorCode, Method, client::ClientError};
use serde_json::{Value, json};

use crate::{
    Outcome,
    figures::{Row, Samples},
    place::eventually,
    screen::{Screen, What},
    session::Session,
    wire::Wire,
};

/// The bound of every wait.
const LIMIT: Duration = Duration::from_secs(10);

/// The time between one takeover and the next.
const QUIET: Duration = Duration::from_millis(50);

/// What an agent types while a person takes over.
const TYPED: usize = 2000;

/// Acquire from idle and from typing agents, and the way back.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let seen = Screen::cover(&session.display()?)?.watch()?;
    let wire = session.wire()?;
    let agent = session.wire()?;
    let mut returned = Samples::default();
    let mut answered = Samples::default();
    let idle = Samples::take(100, || {
        // What the host still does for the takeover before is not part of this one.
        thread::sleep(QUIET);
        let started = Instant::now();
        let lease = acquire(&wire)?;
        let took = started.elapsed();
        let asked = Instant::now();
        let answer = thread::scope(|scope| {
            let answer = scope.spawn(|| give_back(&wire, &lease).map(|()| asked.elapsed()));
            let active = until_active(&agent).map(|()| asked.elapsed());
            (answer.join(), active)
        });
        let (Ok(answer), active) = answer else {
            return Err("giving back panicked".into());
        };
        answered.push(answer?);
        returned.push(active?);
        Ok::<_, crate::Failure>(took)
    })?;

    let typist = session.wire()?;
    let text = "the quick brown fox ".repeat(TYPED / 20);
    let mut interrupted = 0;
    let typing = Samples::take(30, || {
        // Typing needs the focus, and a click a look at what the person left.
        agent.call(Method::DesktopScreenshot, json!({"desktop": "d1"}))?;
        let click = json!({"desktop": "d1", "x": 300, "y": 300});
        agent.call(Method::DesktopClick, click)?;
        while seen.try_recv().is_ok() {}
        let typed = thread::scope(|scope| {
            let typing = scope.spawn(|| {
                let params = json!({"desktop": "d1", "text": text, "method": "keys"});
                typist.call(Method::DesktopType, params)
            });
            // The agent is in the midst of it when the first key has arrived.
            let begun = eventually("the first key", LIMIT, || {
                seen.try_iter().find(|event| event.what == What::Key)
            });
            let started = Instant::now();
            let lease = acquire(&wire).map(|lease| (lease, started.elapsed()));
            (begun, lease, typing.join())
        });
        let (begun, lease, Ok(typing)) = typed else {
            return Err("typing panicked".into());
        };
        let (lease, took) = lease?;
        give_back(&wire, &lease)?;
        until_active(&agent)?;
        begun.map_err(|failure| format!("{failure}; typing: {typing:?}"))?;
        match typing {
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::InterruptedByHuman => {
                interrupted += 1
            }
            other => drop(other?),
        }
        Ok::<_, crate::Failure>(took)
    })?;
    let share = f64::from(interrupted) / typing.len() as f64;
    Ok(vec![
        Row::times("acquire, agents idle", idle).below(Duration::from_millis(5)),
        Row::times("acquire, an agent types 2,000 characters", typing)
            .below(Duration::from_millis(60)),
        Row::number("  share of these that interrupted the typing", share, ""),
        Row::times("return, until an agent may act", returned),
        Row::times("return, until answered", answered),
    ])
}

/// Asks for control and has it.
pub fn acquire(wire: &Wire) -> Outcome<Value> {
    Ok(wire.call(Method::ControlAcquire, json!({"desktop": "d1"}))?)
}

/// Gives it back.
pub fn give_back(wire: &Wire, lease: &Value) -> Outcome<()> {
    let params = json!({"leaseId": lease["leaseId"], "token": lease["token"]});
    wire.call(Method::ControlReturn, params)?;
    Ok(())
}

/// Waits until control is with the agents, then takes a permit and completes it. It looks at the status
/// meanwhile, since each permit that is refused would be recorded, and delay what it waits for.
pub fn until_active(agent: &Wire) -> Outcome<()> {
    let permit = eventually("an agent may act", LIMIT, || {
        let status = agent.call(Method::ControlStatus, json!({"desktop": "d1"}));
        match status {
            Ok(status) if status["control"] != "agent" || status["phase"] != "steady" => None,
            Ok(_) => {
                let params = json!({"desktop": "d1", "what": "measure"});
                Some(agent.call(Method::ControlPermit, params))
            }
            Err(failure) => Some(Err(failure)),
        }
    })??;
    let params = json!({"desktop": "d1", "permit": permit["permit"]});
    agent.call(Method::ControlComplete, params)?;
    Ok(())
}

//! An agent's program for measurements: it speaks as `pi --mode rpc` does, and its model answers at once.
//!
//! The message `flood COUNT A_SECOND` makes it report so many ends of tools, at that pace.

use std::{
    io::{self, BufRead, Write},
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How often the pace of a flood is kept.
const BEAT: Duration = Duration::from_millis(5);

/// Whether this program was started as the agent's.
pub fn is_its_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "pi")
}

/// Is that program, until its input ends.
pub fn speak() -> ExitCode {
    let mut pi = Pi {
        output: io::stdout().lock(),
        working: false,
    };
    for line in io::stdin().lock().lines() {
        let done = line.and_then(|line| pi.take(&line));
        if done.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Pi<W> {
    output: W,
    working: bool,
}

impl<W: Write> Pi<W> {
    /// Does a command.
    fn take(&mut self, line: &str) -> io::Result<()> {
        let command: Value = serde_json::from_str(line)?;
        let kind = command["type"].as_str().unwrap_or_default();
        match kind {
            "prompt" => {
                let text = command["message"].as_str().unwrap_or_default();
                let began = !std::mem::replace(&mut self.working, true);
                let disposition = if began { "started" } else { "queued" };
                let mut lines = vec![answer(&command, json!({"disposition": disposition}))];
                if began {
                    lines.push(json!({"type": "agent_start"}));
                }
                lines.extend(exchange(text));
                self.say(&lines)?;
                self.flood(text)
            }
            "get_state" => {
                let data = json!({"isStreaming": self.working, "isCompacting": false});
                self.say(&[answer(&command, data)])
            }
            "clear_queue" => self.say(&[answer(&command, json!({"steering": [], "followUp": []}))]),
            "abort" => {
                self.working = false;
                self.say(&[
                    answer(&command, json!({})),
                    json!({"type": "agent_settled"}),
                ])
            }
            _ => self.say(&[answer(&command, json!({}))]),
        }
    }

    fn flood(&mut self, text: &str) -> io::Result<()> {
        let mut words = text.split(' ');
        let (Some("flood"), Some(count), Some(pace)) = (words.next(), words.next(), words.next())
        else {
            return Ok(());
        };
        let number = |word: &str| word.parse::<u64>().map_err(io::Error::other);
        let (count, pace) = (number(count)?, number(pace)?);
        let started = Instant::now();
        let mut said = 0;
        while said < count {
            let due = (started.elapsed().as_secs_f64() * pace as f64) as u64;
            let lines: Vec<Value> = (said..due.min(count)).map(tool_end).collect();
            said += lines.len() as u64;
            self.say(&lines)?;
            thread::sleep(BEAT);
        }
        Ok(())
    }

    fn say(&mut self, lines: &[Value]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}

fn answer(command: &Value, data: Value) -> Value {
    json!({
        "type": "response",
        "id": command["id"],
        "command": command["type"],
        "success": true,
        "data": data,
    })
}

/// A message comes into the history, and the model answers.
fn exchange(text: &str) -> [Value; 4] {
    let asked = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let begun = json!({"role": "assistant", "content": []});
    let answered = json!({
        "role": "assistant",
        "content": [{"type": "text", "text": "yes"}],
        "stopReason": "stop",
    });
    [
        json!({"type": "message_start", "message": asked}),
        json!({"type": "message_end", "message": asked}),
        json!({"type": "message_start", "message": begun}),
        json!({"type": "message_end", "message": answered}),
    ]
}

fn tool_end(number: u64) -> Value {
    json!({
        "type": "tool_execution_end",
        "toolCallId": format!("call-{number}"),
        "toolName": "bash",
        "isError": false,
    })
}

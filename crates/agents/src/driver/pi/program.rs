//! How pi is started.

use handover_protocol::{ErrorCode, Refusal};

use super::Pi;
use crate::driver::{Driver, Framing, Program, Task};

/// Arguments that choose where pi keeps the conversation. Without one it is not kept: else the user's
/// own `pi --continue` in the same directory would go on with the agent's.
const SESSION_ARGS: [&str; 8] = [
    "--no-session",
    "--session",
    "--session-dir",
    "--continue",
    "-c",
    "--resume",
    "-r",
    "--fork",
];

/// The driver `pi`.
///
/// # Errors
/// `bad_params` without a prompt, or with arguments that make pi speak another language.
pub fn create(task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    let refuse = |parameter: &str, message: &str| {
        Err(Refusal::new(ErrorCode::BadParams, message).with("parameter", parameter))
    };
    if task.prompt.trim().is_empty() {
        return refuse("prompt", "the driver `pi` needs a prompt");
    }
    let has = |names: &[&str]| task.args.iter().any(|arg| names.contains(&arg.as_str()));
    if has(&["--mode", "--print", "-p"]) {
        return refuse(
            "args",
            "the driver `pi` needs `--mode rpc`, and gives it itself",
        );
    }
    let mut argv = vec!["pi".to_owned(), "--mode".to_owned(), "rpc".to_owned()];
    if !has(&SESSION_ARGS) {
        argv.push("--no-session".to_owned());
    }
    argv.extend(task.args);
    let program = Program {
        argv,
        env: Default::default(),
        framing: Framing::Lines,
    };
    Ok((program, Box::new(Pi::new(task.prompt))))
}

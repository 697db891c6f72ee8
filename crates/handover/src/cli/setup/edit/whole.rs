//! A file that is ours alone.

use super::{Change, Problem};

/// What has to be done for the file to say `ours`. `force` replaces what others wrote.
pub fn put(text: Option<&str>, ours: &str, force: bool) -> Result<Change, Problem> {
    match text {
        Some(text) if text == ours => Ok(Change::Nothing),
        Some(_) if !force => Err(Problem::Altered),
        _ => Ok(Change::Write(ours.to_owned())),
    }
}

/// What has to be done for the file not to be there. `force` removes what others wrote.
pub fn take_away(text: Option<&str>, ours: &str, force: bool) -> Result<Change, Problem> {
    match text {
        None => Ok(Change::Nothing),
        Some(text) if text == ours || force => Ok(Change::Delete),
        Some(_) => Err(Problem::Altered),
    }
}

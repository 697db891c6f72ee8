//! Waiting for something to become true, with a bound.

use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Failure;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Looks again and again until `look` finds something, at most for `bound`.
///
/// # Errors
/// The first error of `look`, or one that names `what` when the time is up.
pub async fn until<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(format!("{what}: not within {bound:?}")));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

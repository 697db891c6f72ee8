//! Noticing that nobody reads our output any more, also while there is nothing to write.

use std::io;

use tokio::sync::oneshot;

use super::failure::Failure;
use crate::streams;

/// Tells when the reader of standard output has gone.
#[derive(Debug)]
pub struct HangUp(oneshot::Receiver<()>);

impl HangUp {
    /// Watches standard output from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch() -> io::Result<Self> {
        streams::hang_up().map(Self)
    }

    /// Waits until the reader has gone, and gives what a write would fail with. Not to be awaited
    /// again after that.
    pub async fn told(&mut self) -> Failure {
        let _ = (&mut self.0).await;
        io::Error::from(io::ErrorKind::BrokenPipe).into()
    }
}

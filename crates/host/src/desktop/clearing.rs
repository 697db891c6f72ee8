//! The clipboard on the X side at the end of a takeover: the selections that are no RFB clipboard, and the cut
//! buffers.

use std::time::Duration;

use crate::display::X11;

/// How long after a try that failed the next one begins.
const AGAIN: Duration = Duration::from_millis(100);

/// Empties it, however long the display takes. What a takeover becomes whose end takes too long is for the arbiter
/// to say.
pub(super) async fn clear(x11: &X11) {
    let mut is_told = false;
    while let Err(error) = x11.clear_clipboard().await {
        if !is_told {
            tracing::warn!(%error, "the clipboard cannot be cleared yet");
            is_told = true;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

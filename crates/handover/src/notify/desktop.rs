//! Notices on this user's own desktop: `org.freedesktop.Notifications` on the session bus.

use std::time::Duration;

use super::bus::{Bus, Refused};
use super::message::{Message, Priority};
use super::queue::Queue;
use super::wire::{Body, Call};

/// How long the bus and the desktop may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Shows what comes. Where there is no bus, nothing is to be shown.
pub fn run(queue: &Queue) {
    let mut complained = false;
    loop {
        let job = queue.next();
        let shown = Bus::connect(ANSWERS_WITHIN).and_then(|bus| match bus {
            Some(mut bus) => bus.call(&notify(&job.message)),
            None => Ok(()),
        });
        match shown {
            Ok(()) => complained = false,
            // A machine without a desktop is no fault, and said once.
            Err(error) if !complained => {
                complained = true;
                let nobody = error.get_ref().is_some_and(|inner| inner.is::<Refused>());
                tracing::info!(%error, nobody, "notices are not shown on the desktop");
            }
            Err(_) => {}
        }
    }
}

/// The call that shows a message.
fn notify(message: &Message) -> Call<'static> {
    let mut body = Body::default();
    body.text("handover");
    // It replaces none.
    body.number(0);
    body.text("");
    body.text(&message.title);
    // Desktops may take this for markup.
    body.text(&escaped(&message.text));
    body.no_texts();
    body.byte_hint(
        "urgency",
        match message.priority {
            Priority::Usual => 1,
            // Stays until it is looked at.
            Priority::High => 2,
        },
    );
    // For as long as the desktop thinks fit.
    body.number(u32::MAX);
    Call {
        destination: "org.freedesktop.Notifications",
        path: "/org/freedesktop/Notifications",
        interface: "org.freedesktop.Notifications",
        member: "Notify",
        signature: "susssasa{sv}i",
        body: body.into_bytes(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::request;
    use super::*;

    #[test]
    fn markup_of_agents_is_text() {
        let call = notify(&Message::of(&request()));
        let body = String::from_utf8_lossy(&call.body).into_owned();
        assert!(body.contains("&lt;b&gt;now&lt;/b&gt;"), "{body}");
        assert!(
            !body.contains("<b>") && !body.contains('\u{202e}'),
            "{body}"
        );
    }
}

//! `subscribe` and `journal`: the record as it was and as it grows.

use std::pin::pin;
use std::time::Duration;

use handover_protocol::server::outlet::{Outlet, Room};
use handover_protocol::{
    ErrorCode, Event, Gap, JournalParams, JournalResult, Method, Refusal, SubscribeParams,
    SubscribeResult, check_kinds, envelope,
};
use handover_store::{Live, LiveItem, Query, Store, StoreError};

/// Events that a subscription reads at once while it catches up.
const CATCH_UP: usize = 200;
/// How long a subscription waits when the record has too much to read.
const AGAIN: Duration = Duration::from_millis(20);

/// One page of the record.
pub(super) async fn journal(
    store: &Store,
    params: JournalParams,
) -> Result<JournalResult, Refusal> {
    let kinds = params.kinds.unwrap_or_default();
    check_kinds(Method::Journal, &kinds)?;
    let limit = match params.limit {
        Some(0) => {
            return Err(envelope::bad_params(
                Method::Journal,
                "`limit` must be 1 or more",
            ));
        }
        limit => limit
            .unwrap_or(JournalParams::DEFAULT_LIMIT)
            .min(JournalParams::MAX_LIMIT),
    };
    let query = Query {
        since: params.since.unwrap_or(0),
        limit: limit as usize,
        kinds,
        agent: None,
    };
    let page = store
        .events(query)
        .await
        .map_err(|error| unreadable(&error))?;
    Ok(JournalResult {
        events: page.events.iter().filter_map(to_wire).collect(),
        next: page.next,
        head: page.head,
    })
}

/// A subscription that has not begun.
pub(super) struct Subscription {
    store: Store,
    live: Live,
    /// The last number that was sent or passed over.
    seen: u64,
    kinds: Vec<String>,
    agent: Option<String>,
}

impl Subscription {
    /// Checks the parameters and fixes the place to begin.
    pub(super) fn new(
        store: &Store,
        params: SubscribeParams,
    ) -> Result<(Self, SubscribeResult), Refusal> {
        let kinds = params.kinds.unwrap_or_default();
        check_kinds(Method::Subscribe, &kinds)?;
        let live = store.subscribe();
        let cursor = params.since.unwrap_or_else(|| live.cursor());
        let subscription = Self {
            store: store.clone(),
            live,
            seen: cursor,
            kinds,
            agent: params.agent.map(|agent| agent.0),
        };
        Ok((subscription, SubscribeResult { cursor }))
    }

    /// Sends events until the connection or the store is closed.
    ///
    /// Whoever reads fast enough gets every event. What a slow reader misses is named in a `gap`.
    /// A live event is written out once for all subscriptions; what is read from the record is
    /// checked first, since anybody may have changed it there.
    pub(super) async fn run(mut self: Box<Self>, outlet: Outlet) {
        let to = self.live.cursor();
        if !self.catch_up(to, &outlet).await {
            return;
        }
        let mut closed = pin!(outlet.closed());
        // Whether the client had to be waited for since the last event: then what is missing is the
        // client's doing, and is not read for it afterwards.
        let mut slow = false;
        loop {
            let item = tokio::select! {
                item = self.live.next() => item,
                () = &mut closed => return,
            };
            let Some(item) = item else { return };
            match item {
                LiveItem::Event(event) if event.seq > self.seen => {
                    match outlet.room().await {
                        Room::Closed => return,
                        room => slow = room == Room::Later,
                    }
                    self.seen = event.seq;
                    if self.wants(&event) {
                        outlet.share(event.line());
                    }
                }
                LiveItem::Gap { to, .. } if to > self.seen && slow => {
                    slow = false;
                    let from = self.seen + 1;
                    self.seen = to;
                    outlet.notify("gap", &Gap { from, to });
                }
                LiveItem::Gap { to, .. } if to > self.seen => {
                    if !self.catch_up(to, &outlet).await {
                        return;
                    }
                }
                LiveItem::Event(_) | LiveItem::Gap { .. } => {}
            }
        }
    }

    /// Sends from the record what is there up to `to`; `false` once the connection is closed.
    async fn catch_up(&mut self, to: u64, outlet: &Outlet) -> bool {
        while self.seen < to {
            if outlet.room().await == Room::Closed {
                return false;
            }
            let query = Query {
                since: self.seen,
                limit: CATCH_UP,
                kinds: self.kinds.clone(),
                agent: self.agent.clone(),
            };
            match self.store.events(query).await {
                Ok(page) => {
                    let wanted = page.events.iter().filter(|event| self.wants(event));
                    for event in wanted.filter_map(to_wire) {
                        outlet.notify("event", &event);
                    }
                    self.seen = page.next;
                }
                // Many come back at once: nothing is lost by waiting for the others.
                Err(StoreError::QueueFull) => tokio::time::sleep(AGAIN).await,
                Err(error) => {
                    tracing::warn!(%error, "a subscription could not read the record");
                    let from = self.seen + 1;
                    self.seen = to;
                    outlet.notify("gap", &Gap { from, to });
                }
            }
        }
        true
    }

    fn wants(&self, event: &handover_store::Event) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(&event.kind);
        kind && (self.agent.is_none() || self.agent == event.agent)
    }
}

fn to_wire(event: &handover_store::Event) -> Option<Event> {
    let wire = event.to_wire();
    if wire.is_none() {
        tracing::warn!(
            seq = event.seq,
            "a stored event cannot be read; run `handover verify`"
        );
    }
    wire
}

fn unreadable(error: &StoreError) -> Refusal {
    let code = match error {
        StoreError::QueueFull => ErrorCode::QueueFull,
        _ => ErrorCode::StorageFailed,
    };
    Refusal::new(code, error.to_string())
}

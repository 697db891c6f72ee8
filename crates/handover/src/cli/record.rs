//! The record of a session, from its host or, when there is none, from its database.

use std::path::PathBuf;

use handover_host::system::dirs::Roots;
use handover_protocol::{ErrorCode, Event, JournalParams, JournalResult, Method, SessionId};
use handover_store::Query;

use super::context::Context;
use super::discover;
use super::failure::Failure;
use super::session::Session;

/// Where a record is.
#[derive(Debug)]
pub struct Record {
    /// The session.
    pub id: SessionId,
    /// Its directory.
    pub dir: PathBuf,
    /// Its host, if it has one.
    pub host: Option<Session>,
}

impl Record {
    /// The record of the session that the options, the environment and the directory choose: a
    /// live one if there is one, else a stored one.
    pub async fn find(context: &Context) -> Result<Self, Failure> {
        match Session::open(context).await {
            Ok(host) => {
                let id = host.hello.session_id.clone();
                let root = Roots::from_env().state();
                let root = root
                    .map_err(|error| Failure::new(ErrorCode::StorageFailed, error.to_string()))?;
                Ok(Self {
                    dir: root.join(id.as_str()),
                    id,
                    host: Some(host),
                })
            }
            Err(failure) if failure.code() == ErrorCode::SessionUnknown => {
                if context.socket.is_some() {
                    return Err(failure);
                }
                let stored = discover::stored_session(context)?;
                Ok(Self {
                    id: stored.id,
                    dir: stored.state_dir,
                    host: None,
                })
            }
            Err(failure) => Err(failure),
        }
    }

    /// One page of events after number `since`; the last page has no events.
    pub async fn page(&self, since: u64, kinds: &[String]) -> Result<JournalResult, Failure> {
        if let Some(host) = &self.host {
            let params = JournalParams {
                since: Some(since),
                limit: None,
                kinds: (!kinds.is_empty()).then(|| kinds.to_vec()),
            };
            return host.call(Method::Journal, &params).await;
        }
        let query = Query {
            since,
            kinds: kinds.to_vec(),
            ..Query::default()
        };
        let page = handover_store::events_dir(&self.dir, &query)
            .map_err(|error| Failure::new(ErrorCode::StorageFailed, error.to_string()))?;
        let events = page
            .events
            .iter()
            .filter_map(handover_store::Event::to_wire)
            .collect();
        Ok(JournalResult {
            events,
            next: page.next,
            head: page.head,
        })
    }

    /// All events after number `since`, and the head of the chain.
    pub async fn all(&self, since: u64, kinds: &[String]) -> Result<(Vec<Event>, String), Failure> {
        let (mut events, mut since) = (Vec::new(), since);
        loop {
            let page = self.page(since, kinds).await?;
            if page.events.is_empty() && page.next <= since {
                return Ok((events, page.head));
            }
            events.extend(page.events);
            since = page.next;
        }
    }
}

//! Which reply a request gets.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::reply::Reply;
use crate::request::Request;

type Rule = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

/// What the test wants answered; clones are the same book.
#[derive(Clone, Default)]
pub(crate) struct Book {
    shared: Arc<Mutex<Pages>>,
}

#[derive(Default)]
struct Pages {
    rules: Vec<Rule>,
    scripts: Vec<(String, VecDeque<Reply>)>,
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").finish_non_exhaustive()
    }
}

impl Book {
    /// Adds a rule, to be asked after those before it.
    pub(crate) fn rule(&self, rule: Rule) {
        self.lock(|pages| pages.rules.push(rule));
    }

    /// Adds replies for the conversation whose user says `marker`.
    pub(crate) fn script(&self, marker: &str, replies: impl IntoIterator<Item = Reply>) {
        self.lock(|pages| {
            let known = pages.scripts.iter_mut().find(|(known, _)| known == marker);
            match known {
                Some((_, script)) => script.extend(replies),
                None => pages
                    .scripts
                    .push((marker.to_owned(), replies.into_iter().collect())),
            }
        });
    }

    /// The reply to `request`: of the first rule that has one, else the next of its conversation's
    /// script, else one that repeats the user's last words.
    pub(crate) fn reply(&self, request: &Request) -> Reply {
        let scripted = self.lock(|pages| {
            let ruled = pages.rules.iter().find_map(|rule| rule(request));
            ruled.or_else(|| {
                if !request.is_turn() {
                    return None;
                }
                let spoken = |marker: &str| request.user().any(|text| text.contains(marker));
                let script = pages.scripts.iter_mut().find(|(marker, _)| spoken(marker));
                script.and_then(|(_, replies)| replies.pop_front())
            })
        });
        scripted.unwrap_or_else(|| {
            if request.is_turn() {
                Reply::text(format!(
                    "heard: {}",
                    request.user().next_back().unwrap_or_default()
                ))
            } else {
                Reply::text("ok")
            }
        })
    }

    fn lock<T>(&self, with: impl FnOnce(&mut Pages) -> T) -> T {
        with(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! The agents in memory: their order, their tree, and who may start next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use handover_protocol::{
    AgentId, AgentStatus, DesktopId, Refusal, RequestId, SteerId, SteerState, SteerWhen, Timestamp,
    Tokens,
};
use tokio::sync::{mpsc, watch};

use super::limits::{CLOSED_STEERS, Limits, Rate};
use super::receipt::{Receipt, is_final};
use super::refuse;
use super::task::{Outcome, Task};
use crate::run::{Launch, Order};

/// Most agents that a refusal names, the newest first.
const MAX_TOLD: usize = 16;

/// All agents of a session.
#[derive(Debug)]
pub(crate) struct Table {
    /// By order.
    agents: BTreeMap<u64, Entry>,
    orders: HashMap<AgentId, u64>,
    /// Those that have not ended, by order: few, where all may be ten thousand.
    unfinished: BTreeSet<u64>,
    /// Those that wait for their turn, by order.
    queue: VecDeque<u64>,
    /// Those that will wait for their turn once they are stored.
    coming: usize,
    last: u64,
    /// Set when the session ends: nothing begins any more.
    pub closing: bool,
    /// A start is tried again in a while.
    pub starts_later: bool,
    /// What people start.
    pub people: Rate,
    /// What agents start.
    pub programs: Rate,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What is stored of it.
    pub task: Task,
    /// What an unfinished one has beyond that.
    pub work: Option<Box<Work>>,
    /// What an ended one leaves until the record has it.
    pub left: Option<Box<Left>>,
    /// What its model took in and gave out, as far as its program has said; not stored.
    pub tokens: Option<Tokens>,
}

/// What an ended agent leaves: neither its result nor a receipt is told of as older than it is.
#[derive(Debug)]
pub(crate) struct Left {
    /// What it came to, if that is not stored already.
    pub outcome: Option<Outcome>,
    /// What is known about its steers.
    pub steers: Steers,
}

/// What belongs to an unfinished agent.
#[derive(Debug)]
pub(crate) struct Work {
    /// What is to be started; taken at the start.
    pub launch: Option<Box<Launch>>,
    /// Set for a program's own subagent.
    pub native: Option<Native>,
    /// When a steer can be put to it; the first is done without a wish.
    pub when: &'static [SteerWhen],
    /// The desktops that it uses.
    pub desktops: Vec<DesktopId>,
    /// The permission that its program asks for, by the program's name for the question.
    pub asked: BTreeMap<String, RequestId>,
    /// Somebody ends it.
    pub aborting: bool,
    /// The way to its run; the run's end closes it.
    pub inbox: Option<mpsc::Sender<Order>>,
    /// Tells its run to end.
    pub abort: watch::Sender<bool>,
    /// What is known about its steers.
    pub steers: Steers,
    /// Told when it has ended.
    pub ended: watch::Sender<Option<Ending>>,
}

/// Where a program's own subagent is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Native {
    /// The agent whose program started it.
    pub root: AgentId,
    /// The program's name for it.
    pub name: String,
}

/// How an agent ended, for those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// How it stands.
    pub status: AgentStatus,
    /// Pids that could not be ended.
    pub survivors: Vec<u32>,
}

impl Work {
    pub fn new(launch: Option<Box<Launch>>, native: Option<Native>) -> Self {
        Self {
            launch,
            native,
            when: &[],
            desktops: Vec::new(),
            asked: BTreeMap::new(),
            aborting: false,
            inbox: None,
            abort: watch::Sender::new(false),
            steers: Steers::default(),
            ended: watch::Sender::new(None),
        }
    }
}

/// The receipts of one agent: the open ones, and the last that were closed.
#[derive(Debug, Default)]
pub(crate) struct Steers {
    by_id: HashMap<SteerId, Kept>,
    /// The bytes of the texts of the open ones.
    open_bytes: usize,
    /// In the order in which they were closed.
    closed: VecDeque<SteerId>,
    /// Some are only in the record.
    forgotten: bool,
}

/// A receipt that is kept in memory.
#[derive(Debug)]
struct Kept {
    receipt: Arc<Receipt>,
    /// The bytes of the steer's text while the receipt is open, then 0.
    bytes: usize,
}

impl Steers {
    pub fn get(&self, id: &SteerId) -> Option<Arc<Receipt>> {
        self.by_id.get(id).map(|kept| kept.receipt.clone())
    }

    pub fn open(&self) -> usize {
        self.by_id.len() - self.closed.len()
    }

    /// The bytes of the texts of the open ones.
    pub fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// Adds an open one, whose text has so many bytes.
    pub fn add(&mut self, id: SteerId, receipt: Arc<Receipt>, bytes: usize) {
        self.by_id.insert(id, Kept { receipt, bytes });
        self.open_bytes += bytes;
    }

    /// Forgets one that was never accepted.
    pub fn forget(&mut self, id: &SteerId) {
        if let Some(kept) = self.by_id.remove(id) {
            self.open_bytes -= kept.bytes;
        }
        self.closed.retain(|closed| closed != id);
    }

    /// Counts a closed receipt among those that may be forgotten.
    pub fn close(&mut self, id: &SteerId) {
        if let Some(kept) = self.by_id.get_mut(id) {
            self.open_bytes -= std::mem::take(&mut kept.bytes);
        }
        self.closed.push_back(id.clone());
        while self.closed.len() > CLOSED_STEERS {
            if let Some(oldest) = self.closed.pop_front() {
                self.by_id.remove(&oldest);
                self.forgotten = true;
            }
        }
    }

    /// Whether one that is not here may be in the record.
    pub fn has_forgotten(&self) -> bool {
        self.forgotten
    }

    /// Whether the program was handed a message of which it has not shown yet what becomes of it.
    pub fn any_on_its_way(&self) -> bool {
        self.by_id.values().any(|kept| {
            let state = kept.receipt.known().state;
            matches!(state, SteerState::Handed | SteerState::Queued)
        })
    }

    /// Those whose receipt is open.
    pub fn unfinished(&self) -> Vec<(SteerId, Arc<Receipt>)> {
        self.by_id
            .iter()
            .filter(|(_, kept)| !is_final(kept.receipt.known().state))
            .map(|(id, kept)| (id.clone(), kept.receipt.clone()))
            .collect()
    }
}

impl Table {
    /// With agents that have ended.
    pub fn of(ended: Vec<Task>) -> Self {
        let orders = ended.iter().map(|task| (task.id.clone(), task.order));
        let orders: HashMap<_, _> = orders.collect();
        let last = orders.values().copied().max().unwrap_or_default();
        let entry = |task: Task| {
            let order = task.order;
            let (work, left, tokens) = (None, None, None);
            (
                order,
                Entry {
                    task,
                    work,
                    left,
                    tokens,
                },
            )
        };
        Self {
            // From all at once, which takes less memory than from one after the other.
            agents: ended.into_iter().map(entry).collect(),
            orders,
            unfinished: BTreeSet::new(),
            queue: VecDeque::new(),
            coming: 0,
            last,
            closing: false,
            starts_later: false,
            people: Rate::of_people(),
            programs: Rate::of_agents(),
        }
    }

    /// The order of the next agent.
    pub fn next_order(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn insert(&mut self, task: Task, work: Option<Box<Work>>) {
        self.last = self.last.max(task.order);
        self.orders.insert(task.id.clone(), task.order);
        if work.is_some() {
            self.unfinished.insert(task.order);
        }
        let (left, tokens) = (None, None);
        let order = task.order;
        let entry = Entry {
            task,
            work,
            left,
            tokens,
        };
        self.agents.insert(order, entry);
    }

    /// Takes back an agent that could not be stored.
    pub fn remove(&mut self, id: &AgentId) {
        if let Some(order) = self.orders.remove(id) {
            self.agents.remove(&order);
            self.unfinished.remove(&order);
            self.queue.retain(|&queued| queued != order);
        }
    }

    pub fn get(&self, id: &AgentId) -> Option<&Entry> {
        self.agents.get(self.orders.get(id)?)
    }

    pub fn get_mut(&mut self, id: &AgentId) -> Option<&mut Entry> {
        self.agents.get_mut(self.orders.get(id)?)
    }

    /// The work of an unfinished agent.
    pub fn work_mut(&mut self, id: &AgentId) -> Option<&mut Work> {
        self.get_mut(id)?.work.as_deref_mut()
    }

    /// Ends the work of an agent: what is left is the task. Answers the work, for its receipts and its
    /// watchers.
    pub fn end(&mut self, id: &AgentId, status: AgentStatus, at: Timestamp) -> Option<Box<Work>> {
        debug_assert!(status.has_ended());
        let entry = self.get_mut(id)?;
        let work = entry.work.take()?;
        entry.task.status = status;
        entry.task.finished_at = Some(at);
        let order = entry.task.order;
        self.unfinished.remove(&order);
        Some(work)
    }

    /// The agent of this id.
    ///
    /// # Errors
    /// `agent_unknown`, with the agents that there are.
    pub fn known(&self, id: &AgentId) -> Result<&Entry, Refusal> {
        self.get(id).ok_or_else(|| self.unknown(id))
    }

    /// The refusal of an agent that there is not.
    pub fn unknown(&self, id: &AgentId) -> Refusal {
        let newest = || self.agents.values().rev().map(|entry| &entry.task);
        let is_named = |task: &&Task| task.name == id.as_str();
        let named = newest().filter(is_named).map(|task| &task.id);
        let named: Vec<&AgentId> = named.take(MAX_TOLD).collect();
        let told = newest().map(|task| &task.id);
        let told: Vec<&AgentId> = told.take(MAX_TOLD).collect();
        refuse::unknown(id, &named, &told, self.agents.len() - told.len())
    }

    /// Those that have not ended, oldest first.
    pub fn unfinished(&self) -> impl Iterator<Item = &Entry> {
        self.unfinished
            .iter()
            .filter_map(|order| self.agents.get(order))
    }

    /// Those that have not ended and the newest others, so many of them, oldest first.
    pub fn listed(&self, ended: usize) -> Vec<&Entry> {
        let mut listed = Vec::new();
        let mut left = ended;
        let mut oldest = u64::MAX;
        for (&order, entry) in self.agents.iter().rev() {
            if entry.work.is_none() {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            listed.push(entry);
            oldest = order;
        }
        let older = self.unfinished.range(..oldest).rev();
        listed.extend(older.filter_map(|order| self.agents.get(order)));
        listed.reverse();
        listed
    }

    /// A program's own subagent.
    pub fn native(&self, root: &AgentId, name: &str) -> Option<&Entry> {
        self.unfinished().find(|entry| {
            let native = entry.work.as_ref().and_then(|work| work.native.as_ref());
            native.is_some_and(|native| native.root == *root && native.name == name)
        })
    }

    /// Whether another agent of the same program has an open steer of this name, by which the program
    /// could not tell the two apart.
    pub fn has_steer_of_another(&self, root: &AgentId, id: &AgentId, steer: &SteerId) -> bool {
        self.unfinished().any(|entry| {
            let Some(work) = &entry.work else {
                return false;
            };
            let native = work.native.as_ref();
            let same = native.map_or(&entry.task.id, |native| &native.root) == root;
            same && entry.task.id != *id && work.steers.get(steer).is_some()
        })
    }

    /// The agents below `id` that have not ended, also those below one that has; parents before their
    /// children.
    pub fn below(&self, id: &AgentId) -> Vec<AgentId> {
        let Some(&order) = self.orders.get(id) else {
            return Vec::new();
        };
        // Whoever is started comes after its parent.
        let mut tree = HashSet::from([id]);
        let mut found = Vec::new();
        for entry in self.agents.range(order..).map(|(_, entry)| entry) {
            if entry
                .task
                .parent
                .as_ref()
                .is_some_and(|parent| tree.contains(parent))
            {
                tree.insert(&entry.task.id);
                if entry.work.is_some() {
                    found.push(entry.task.id.clone());
                }
            }
        }
        found
    }

    /// Whether `id` is below `ancestor`.
    pub fn is_below(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        let mut parent = self.get(id).and_then(|entry| entry.task.parent.as_ref());
        while let Some(above) = parent {
            if above == ancestor {
                return true;
            }
            parent = self.get(above).and_then(|entry| entry.task.parent.as_ref());
        }
        false
    }

    /// The unfinished children of an agent.
    pub fn children(&self, id: &AgentId) -> usize {
        self.unfinished()
            .filter(|entry| entry.task.parent.as_ref() == Some(id))
            .count()
    }

    /// How many wait for their turn, or will.
    pub fn queued(&self) -> usize {
        self.queue.len() + self.coming
    }

    /// One will wait for its turn.
    pub fn announce(&mut self) {
        self.coming += 1;
    }

    /// One that was announced is stored and waits, or could not be stored or was ended meanwhile.
    pub fn arrive(&mut self, id: &AgentId) {
        self.coming -= 1;
        if let Some(entry) = self.get(id)
            && entry.work.is_some()
        {
            let order = entry.task.order;
            self.queue.push_back(order);
        }
    }

    /// Takes an agent out of the queue.
    pub fn unqueue(&mut self, id: &AgentId) {
        if let Some(&order) = self.orders.get(id) {
            self.queue.retain(|&queued| queued != order);
        }
    }

    /// The next agent that may start, taken from the queue.
    pub fn next_to_start(&mut self, limits: &Limits) -> Option<AgentId> {
        if self.closing || self.queue.is_empty() || self.occupied() >= limits.running {
            return None;
        }
        let order = self.queue.pop_front()?;
        Some(self.agents.get(&order)?.task.id.clone())
    }

    /// Agents that count as working: with a program of their own, and without an unfinished child
    /// that they may be waiting for.
    fn occupied(&self) -> usize {
        let own_program = |entry: &&Entry| {
            let work = entry.work.as_ref();
            work.is_some_and(|work| work.native.is_none())
        };
        let with_program = || self.unfinished().filter(own_program);
        let parents: HashSet<&AgentId> = with_program()
            .filter_map(|entry| entry.task.parent.as_ref())
            .collect();
        with_program()
            .filter(|entry| entry.task.status != AgentStatus::Queued)
            .filter(|entry| !parents.contains(&entry.task.id))
            .count()
    }
}

impl Entry {
    /// What is known in memory about its steers.
    pub fn steers(&self) -> Option<&Steers> {
        match (&self.work, &self.left) {
            (Some(work), _) => Some(&work.steers),
            (None, left) => left.as_ref().map(|left| &left.steers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(order: u64, parent: Option<u64>, status: AgentStatus) -> Task {
        Task {
            order,
            id: id(order),
            name: String::new(),
            driver: "command".to_owned(),
            status,
            parent: parent.map(id),
            depth: 0,
            task: String::new(),
            desktop: None,
            started_at: None,
            finished_at: None,
            output_file: None,
            not_steerable: None,
        }
    }

    fn id(order: u64) -> AgentId {
        AgentId(format!("a{order}"))
    }

    fn table(rows: &[(u64, Option<u64>, AgentStatus)]) -> Table {
        let mut table = Table::of(Vec::new());
        for &(order, parent, status) in rows {
            let work = (!status.has_ended()).then(|| Box::new(Work::new(None, None)));
            table.insert(task(order, parent, status), work);
            if status == AgentStatus::Queued {
                table.announce();
                table.arrive(&id(order));
            }
        }
        table
    }

    #[test]
    fn a_parent_that_may_wait_for_its_children_does_not_keep_them_from_starting() {
        use AgentStatus::{Queued, Running};
        let limits = Limits::new(1);
        let mut table = table(&[(1, None, Running), (2, Some(1), Queued), (3, None, Queued)]);
        assert_eq!(table.next_to_start(&limits), Some(id(2)));
        table.get_mut(&id(2)).unwrap().task.status = Running;
        assert_eq!(table.next_to_start(&limits), None);
    }

    #[test]
    fn a_list_has_all_that_work_and_the_newest_that_do_not() {
        use AgentStatus::{Done, Running};
        let rows = [
            (1, None, Running),
            (2, None, Done),
            (3, None, Running),
            (4, None, Done),
            (5, None, Running),
            (6, None, Done),
        ];
        let mut table = table(&rows);
        let listed = |table: &Table, ended| -> Vec<u64> {
            let listed = table.listed(ended).into_iter();
            listed.map(|entry| entry.task.order).collect()
        };
        assert_eq!(listed(&table, 0), [1, 3, 5]);
        assert_eq!(listed(&table, 1), [1, 3, 5, 6]);
        assert_eq!(listed(&table, 2), [1, 3, 4, 5, 6]);
        assert_eq!(listed(&table, 9), [1, 2, 3, 4, 5, 6]);
        assert!(table.end(&id(5), Done, Timestamp(0)).is_some());
        assert!(table.end(&id(5), Done, Timestamp(0)).is_none());
        assert_eq!(listed(&table, 1), [1, 3, 6]);
        assert_eq!(table.unfinished().count(), 2);
        table.remove(&id(3));
        assert_eq!(listed(&table, 0), [1]);
    }

    #[test]
    fn the_tree_below_leaves_out_what_has_ended() {
        use AgentStatus::{Done, Running};
        let table = table(&[
            (1, None, Running),
            (2, Some(1), Running),
            (3, Some(2), Running),
            (4, Some(1), Done),
            (5, None, Running),
            (6, Some(4), Running),
        ]);
        assert_eq!(table.below(&id(1)), [id(2), id(3), id(6)]);
        assert!(table.is_below(&id(3), &id(1)));
        assert!(table.is_below(&id(4), &id(1)));
        assert!(!table.is_below(&id(1), &id(3)));
        assert!(!table.is_below(&id(5), &id(1)));
    }

    #[test]
    fn closed_receipts_are_forgotten_beyond_the_bound_open_ones_never() {
        let mut steers = Steers::default();
        let name = |n: usize| SteerId(format!("s{n}"));
        for n in 0..CLOSED_STEERS + 10 {
            steers.add(name(n), Arc::new(Receipt::new()), 3);
        }
        assert_eq!(steers.open_bytes(), 3 * (CLOSED_STEERS + 10));
        for n in 1..CLOSED_STEERS + 10 {
            steers
                .get(&name(n))
                .unwrap()
                .advance(handover_protocol::SteerState::Dropped, None);
            steers.close(&name(n));
        }
        assert_eq!(steers.open(), 1);
        assert!(steers.get(&name(0)).is_some());
        assert!(steers.get(&name(1)).is_none());
        assert!(steers.get(&name(CLOSED_STEERS + 9)).is_some());
        // Of the closed ones nothing is counted, whichever way they went.
        assert_eq!(steers.open_bytes(), 3);
        steers.forget(&name(CLOSED_STEERS + 9));
        assert_eq!(steers.open_bytes(), 3);
        steers.forget(&name(0));
        assert_eq!(steers.open_bytes(), 0);
    }
}

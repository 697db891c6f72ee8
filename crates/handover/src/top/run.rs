//! The loop: what happens goes into the state of the screen, which is drawn, and what is to be done is done.

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyModifiers};
use handover_protocol::client::Client;
use handover_protocol::{DesktopId, SessionId};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use super::act::{self, Act, Done};
use super::app::{App, Status, Todo};
use super::child::{self, Ended};
use super::draw;
use super::draw::tree::Now;
use super::keyboard::Keyboard;
use super::paint::Paint;
use super::terminal::Screen;
use crate::cli::list;
use crate::overview::{Feed, Session};

/// How soon after one frame the next may be drawn.
const FRAME: Duration = Duration::from_millis(40);

/// How often ages and countdowns are brought up to date.
const TICK: Duration = Duration::from_secs(1);

/// News that are taken in before the next frame.
const AT_ONCE: usize = 256;

/// Acts that may be under way.
const MOST_ACTS: usize = 64;

/// How long what is under way may take when this program ends.
const LAST_ACTS: Duration = Duration::from_secs(1);

/// What it takes to begin.
#[derive(Debug)]
pub struct Start {
    /// What is new in all sessions.
    pub feed: Feed,
    /// The viewer that a takeover opens, as `handover watch --viewer` takes it.
    pub viewer: OsString,
    /// Whether the bell rings, and the title changes, when an agent asks for a person.
    pub bell: bool,
    /// What a person is to know at the beginning.
    pub trouble: Option<String>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The person quit.
    Quit,
    /// Ctrl-C or a signal ended it, or the terminal is gone.
    Interrupted,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end.
    End,
    /// Ctrl-C, where the terminal makes a signal of it.
    Interrupt,
    /// To stop for a while.
    Suspend,
    /// To draw anew, since the size is another one.
    Resize,
    /// To take the terminal over anew, since it was stopped meanwhile.
    GoOn,
}

/// Catches the signals from when it is made.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    suspend: tokio::signal::unix::Signal,
    goes_on: tokio::signal::unix::Signal,
    resize: tokio::signal::unix::Signal,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            suspend: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
            goes_on: signal(SignalKind::from_raw(Signal::CONT.as_raw()))?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::End,
            _ = self.hang_up.recv() => Asked::End,
            _ = self.suspend.recv() => Asked::Suspend,
            _ = self.goes_on.recv() => Asked::GoOn,
            _ = self.resize.recv() => Asked::Resize,
        }
    }

    /// Passes over what has come until now and was meant for another program that had the terminal. True if
    /// this one is to end all the same.
    pub async fn forget(&mut self) -> bool {
        // What was raised before that program's end has then been told.
        tokio::task::yield_now().await;
        loop {
            let asked = tokio::select! {
                biased;
                asked = self.next() => asked,
                () = std::future::ready(()) => return false,
            };
            if asked == Asked::End {
                return true;
            }
        }
    }
}

/// Shows the screen until the person quits or a signal ends it.
///
/// # Errors
/// If the terminal cannot be used.
pub async fn run(start: Start) -> io::Result<End> {
    let signals = Signals::catch()?;
    let began = Instant::now();
    let mut salt = [0; 8];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    let now = Now {
        ms: 0,
        wall: list::now(),
    };
    let mut top = Top {
        feed: start.feed,
        viewer: start.viewer,
        bell: start.bell,
        app: App::new(now, u64::from_ne_bytes(salt)),
        screen: Screen::open()?,
        keyboard: Some(Keyboard::start()?),
        signals,
        acts: JoinSet::new(),
        began,
        paint: Paint::from_env(),
        needs: 0,
        drawn: None,
    };
    if let Some(trouble) = start.trouble {
        top.app.say(Status::Bad(trouble));
    }
    let end = top.turn().await;
    // What is typed from now on is for the shell.
    top.leave().await;
    // What was asked for is under way on the socket; its answers are not waited for much longer.
    let all = async { while top.acts.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_ACTS, all).await;
    end
}

/// Everything that the loop needs.
struct Top {
    feed: Feed,
    viewer: OsString,
    bell: bool,
    app: App,
    screen: Screen,
    /// None while another program has the terminal.
    keyboard: Option<Keyboard>,
    signals: Signals,
    acts: JoinSet<(Act, Result<Done, String>)>,
    began: Instant,
    paint: Paint,
    /// How many requests the title and the bell have told of.
    needs: usize,
    drawn: Option<Instant>,
}

impl Top {
    async fn turn(&mut self) -> io::Result<End> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.title()?;
        loop {
            self.tell()?;
            let wait = self.due();
            if wait == Some(Duration::ZERO) {
                self.draw()?;
            }
            let wait = self.due();
            let todo = tokio::select! {
                asked = self.signals.next() => match asked {
                    Asked::End | Asked::Interrupt => return Ok(End::Interrupted),
                    Asked::Suspend => Some(Todo::Suspend),
                    Asked::Resize => {
                        self.app.dirty = true;
                        None
                    }
                    Asked::GoOn => {
                        self.screen.come_back()?;
                        self.app.dirty = true;
                        None
                    }
                },
                event = next(&mut self.keyboard) => match event {
                    Some(event) => self.typed(event)?,
                    None => return Ok(End::Interrupted),
                },
                Some((id, news)) = self.feed.news.recv() => {
                    self.app.hear(&id, news);
                    for _ in 1..AT_ONCE {
                        let Ok((id, news)) = self.feed.news.try_recv() else { break };
                        self.app.hear(&id, news);
                    }
                    None
                }
                Some(done) = self.acts.join_next(), if !self.acts.is_empty() => {
                    // A task that panicked has said so; nothing is known of its act.
                    if let Ok((act, done)) = done {
                        self.app.done(&act, done);
                    }
                    None
                }
                _ = tick.tick() => {
                    let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    self.app.tick(ms, list::now());
                    None
                }
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => None,
            };
            match todo {
                None => {}
                Some(Todo::Quit) => return Ok(End::Quit),
                Some(Todo::Interrupt) => return Ok(End::Interrupted),
                Some(Todo::Act(act)) => self.act(act).await?,
                Some(Todo::Acts(acts)) => {
                    for act in acts {
                        self.act(act).await?;
                    }
                }
                Some(Todo::Suspend) => self.suspend().await?,
                Some(Todo::Take(session, desktop)) => {
                    let ended = self.take(&session, &desktop).await?;
                    if ended == Ended::WithUs {
                        return Ok(End::Interrupted);
                    }
                }
            }
        }
    }

    /// How long until the next frame, if there is something to draw.
    fn due(&self) -> Option<Duration> {
        let since = self.drawn.map(|drawn| drawn.elapsed());
        let wait = since.map_or(Duration::ZERO, |since| FRAME.saturating_sub(since));
        self.app.dirty.then_some(wait)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (app, paint) = (&mut self.app, self.paint);
        app.dirty = false;
        self.screen
            .terminal
            .draw(|frame| draw::screen(frame, app, paint))?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    fn typed(&mut self, event: Event) -> io::Result<Option<Todo>> {
        Ok(match event {
            Event::Key(key)
                if key.code == KeyCode::Char('l') && key.modifiers == KeyModifiers::CONTROL =>
            {
                self.screen.clear()?;
                self.app.dirty = true;
                None
            }
            Event::Key(key) => self.app.key(key),
            Event::Mouse(mouse) => self.app.mouse(mouse),
            Event::Paste(text) => {
                self.app.paste(&text);
                None
            }
            Event::Resize(..) | Event::FocusGained | Event::FocusLost => {
                self.app.dirty = true;
                None
            }
        })
    }

    /// Begins to do something; what comes of it is told later.
    async fn act(&mut self, act: Act) -> io::Result<()> {
        let Some(client) = self.feed.hosts.client(&act.session) else {
            let why = "its host does not answer; nothing was done".to_owned();
            self.app.done(&act, Err(why));
            return Ok(());
        };
        if self.acts.len() >= MOST_ACTS {
            let why = "too much is under way; nothing was done".to_owned();
            self.app.done(&act, Err(why));
            return Ok(());
        }
        let session = self.app.overview.session(&act.session);
        if session.is_some_and(Session::asks_first) {
            return self.act_at_the_terminal(&client, act).await;
        }
        self.acts.spawn(async move {
            let done = act::carry_out(&client, act.deed.clone()).await;
            (act, done)
        });
        Ok(())
    }

    /// The same where the host first asks a person on this terminal, which must not be ours meanwhile.
    async fn act_at_the_terminal(&mut self, client: &Client, act: Act) -> io::Result<()> {
        self.leave().await;
        // Only the answer counts, which the host reads: Ctrl-C is none.
        let done = act::carry_out(client, act.deed.clone()).await;
        if done.is_ok() {
            self.app.overview.confirmed(&act.session);
        }
        self.come_back()?;
        self.app.done(&act, done);
        Ok(())
    }

    /// Rings and titles when more is asked of the person, or less.
    fn tell(&mut self) -> io::Result<()> {
        let needs = self.app.overview.tally().needs;
        if needs == self.needs || !self.bell {
            return Ok(());
        }
        if needs > self.needs {
            self.screen.ring()?;
        }
        self.needs = needs;
        self.title()
    }

    fn title(&mut self) -> io::Result<()> {
        let title = match self.needs {
            0 => "handover".to_owned(),
            needs => format!("needs {needs}: handover"),
        };
        self.screen.title(&title)
    }

    /// Gives the terminal to whoever is to have it.
    async fn leave(&mut self) {
        if let Some(keyboard) = self.keyboard.take() {
            keyboard.stop().await;
        }
        self.screen.leave();
    }

    fn come_back(&mut self) -> io::Result<()> {
        self.screen.come_back()?;
        self.keyboard = Some(Keyboard::start()?);
        // The title went with the terminal.
        self.title()?;
        self.app.dirty = true;
        Ok(())
    }

    /// Stops this program as Ctrl-Z does, until the shell continues it.
    async fn suspend(&mut self) -> io::Result<()> {
        if !has_shell() {
            let text = "there is no shell to go back to; q quits".to_owned();
            self.app.say(Status::Bad(text));
            return Ok(());
        }
        self.leave().await;
        rustix::process::kill_current_process_group(Signal::STOP)?;
        self.come_back()
    }

    /// Takes control of a desktop, and comes back when that has ended.
    async fn take(&mut self, session: &SessionId, desktop: &DesktopId) -> io::Result<Ended> {
        self.leave().await;
        let ended = child::take(session, desktop, &self.viewer, &mut self.signals).await;
        let said = match &ended {
            Ok(Ended::WithUs) => return ended,
            Ok(Ended::Itself(true)) => Status::Good(format!("control of {desktop} is over")),
            Ok(Ended::Itself(false)) => {
                child::wait_for_enter(&mut self.signals).await;
                Status::Bad(format!("control of {desktop} was not taken, or lost"))
            }
            Err(error) => Status::Bad(format!("handover watch cannot be started: {error}")),
        };
        self.come_back()?;
        self.app.say(said);
        ended.or(Ok(Ended::Itself(false)))
    }
}

/// The next event; for ever none while another program has the terminal.
async fn next(keyboard: &mut Option<Keyboard>) -> Option<Event> {
    match keyboard {
        Some(keyboard) => keyboard.next().await,
        None => std::future::pending().await,
    }
}

/// Whether somebody is there to continue this program once it has stopped: a parent in the same session.
fn has_shell() -> bool {
    use rustix::process::{getppid, getsid};
    let own = getsid(None);
    let parents = getppid().map(|parent| getsid(Some(parent)));
    matches!((own, parents), (Ok(own), Some(Ok(parents))) if own == parents)
}

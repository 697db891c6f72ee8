//! What people ask of a desktop: control, its end, a pause.

use handover_control::{
    ControllerId, GiveBack, InputSource, LeaseId, Moment, OwnerId, PauseReason, PermitId, Status,
};
use handover_protocol::{
    ControlAcquireResult, ControlRenewResult, ControlReturnResult, End, ErrorCode, Refusal,
};
use tokio::sync::oneshot;

use super::action::Action;
use super::actor::{Actor, OutsidePermit};
use super::by::By;
use super::command::{Answer, Ask, Command, LeaseProof, Look};
use super::overdue::Relayed;
use super::record;
use super::running::{Right, Running};
use super::survey;
use super::takeover::{Asker, Takeovers, millis};
use crate::system::clock;

/// Whoever asked may have gone; then nobody needs the answer.
fn answer<T>(reply: Answer<T>, outcome: Result<T, Refusal>) {
    let _ = reply.send(outcome);
}

impl Actor {
    /// Does what is asked.
    pub(super) fn command(&mut self, command: Command) {
        let now = clock::now();
        match command {
            Command::Act(queued) => self.enqueue(queued),
            Command::Secret {
                by,
                action,
                lease,
                reply,
            } => self.secret(by, action, lease, reply),
            Command::Permit {
                by,
                owner,
                keeper,
                watching,
                what,
                reply,
            } => {
                let outside = OutsidePermit {
                    by,
                    owner,
                    what,
                    relayed: keeper.map(Relayed::new),
                    watching,
                };
                self.outside_permit(outside, reply);
            }
            Command::Complete { permit, by, reply } => self.complete(permit, by, reply),
            Command::OwnerGone(owner) => self.owner_gone(owner, now),
            Command::Acquire(ask) => self.acquire(ask),
            Command::Renew { lease, reply } => {
                let renewed = self.arbiter.renew(now, lease.0, lease.1);
                let result = renewed
                    .map(|renewed| ControlRenewResult {
                        expires_in_ms: millis(renewed.expires_in),
                        epoch: renewed.epoch.0,
                    })
                    .map_err(|refused| self.renewal_refused(lease, refused));
                answer(reply, result);
            }
            Command::Reclaim {
                by,
                lease,
                token,
                viewer,
                reply,
            } => {
                let viewer_known = viewer.is_none_or(|viewer| self.viewers.contains_key(&viewer));
                let result = if viewer_known {
                    self.reclaim(by, lease, token, viewer, now)
                } else {
                    Err(self.viewer_unknown())
                };
                answer(reply, result);
            }
            Command::Return {
                by,
                how,
                lease,
                note,
                reply,
            } => self.give_back(by, how, lease, note, reply),
            Command::Revoke { by, force, reply } => self.revoke(by, force, reply, now),
            Command::Pause { by, reason, reply } => {
                if reason == PauseReason::ForeignConnection {
                    let event = record::foreign_connection(&self.id, self.arbiter.status().epoch);
                    drop(self.links.store.append_spooled(event));
                }
                self.ended_by(by.clone());
                self.takeovers.changed_by = by;
                self.arbiter.pause(now, reason);
                self.takeovers.settlers.push(reply);
            }
            Command::Resume { by, reply } => match self.arbiter.resume(now) {
                Ok(()) => {
                    self.takeovers.changed_by = Some(by);
                    self.takeovers.settlers.push(reply);
                }
                Err(refused) => {
                    let refusal = self.refused(refused);
                    answer(reply, Err(refusal));
                }
            },
            Command::AnswerRequest { lease, give, reply } => {
                let outcome = if give {
                    self.arbiter.give(now, lease.0, lease.1)
                } else {
                    self.arbiter.refuse(now, lease.0, lease.1)
                };
                match outcome {
                    Ok(()) => {
                        self.request_answered(lease.0);
                        self.takeovers.settlers.push(reply);
                    }
                    Err(refused) => {
                        let refusal = self.refused(refused);
                        answer(reply, Err(refusal));
                    }
                }
            }
            Command::MayAct(reply) => {
                let status = self.arbiter.status();
                let result = match status.lease {
                    Some(lease) => {
                        Err(self.refused(handover_control::Refusal::HumanControlActive(lease)))
                    }
                    None => Ok(()),
                };
                answer(reply, result);
            }
            Command::Status(reply) => answer(reply, Ok(self.status())),
            Command::Look { by, reply } => {
                let result = self.look(&by);
                answer(reply, result);
            }
            Command::Looked { observer, epoch } => self.observations.observed(&observer, epoch),
            Command::Tell { observer, reply } => {
                // Whoever asked may have gone.
                let _ = reply.send(self.observations.tell(&observer));
            }
            Command::Record { kind, by, fields } => {
                let epoch = self.arbiter.status().epoch;
                let event = record::other(kind, &self.id, epoch, &by, fields);
                self.links.store.append_soon(event);
            }
            Command::ViewerOpened(viewer) => {
                self.viewers.entry(viewer).or_insert(false);
            }
            Command::ViewerClosed(viewer) => {
                self.viewers.remove(&viewer);
            }
            Command::Unask(controller) => {
                // The request is all that this connection can have here: one
                // that holds the lease does not ask for it.
                self.arbiter.controller_gone(now, controller);
            }
            Command::ConnectionGone(connection) => self.connection_gone(connection, now),
            Command::ServerGone => self.lost(&std::io::ErrorKind::BrokenPipe.into()),
            Command::Close(_) => {}
        }
    }

    /// A permit, or why there is none.
    pub(super) fn permit(
        &mut self,
        by: &By,
        owner: OwnerId,
        now: Moment,
    ) -> Result<PermitId, Refusal> {
        if !self.links.store.healthy() {
            return Err(Refusal::new(
                ErrorCode::StorageFailed,
                "the record cannot be written, so nothing is done that it would miss; make room on the disk and try again",
            ));
        }
        tracing::trace!(desktop = %self.id, pid = by.actor.pid, "permit");
        self.arbiter
            .permit(now, owner)
            .map_err(|refused| self.refused(refused))
    }

    fn outside_permit(
        &mut self,
        outside: OutsidePermit,
        reply: Answer<(PermitId, handover_control::Epoch)>,
    ) {
        let permit = self.permit(&outside.by, outside.owner, clock::now());
        let epoch = self.arbiter.status().epoch;
        if let Ok(permit) = permit {
            self.outside.insert(permit, outside);
        }
        answer(reply, permit.map(|permit| (permit, epoch)));
    }

    fn complete(&mut self, permit: PermitId, by: Option<By>, reply: Answer<()>) {
        let own = self
            .outside
            .get(&permit)
            .is_some_and(|outside| by.is_none_or(|by| by.connection == outside.by.connection));
        if !own {
            let refusal = Refusal::bad_param(
                "permit",
                format!("permit {permit} is not outstanding on this connection"),
            );
            return answer(reply, Err(refusal));
        }
        if let Some(outside) = self.outside.remove(&permit) {
            tracing::debug!(desktop = %self.id, %permit, what = outside.what, "completed");
        }
        self.arbiter.complete(clock::now(), permit);
        answer(reply, Ok(()));
    }

    fn owner_gone(&mut self, owner: OwnerId, now: Moment) {
        self.arbiter.owner_gone(now, owner);
        self.outside.retain(|_, outside| outside.owner != owner);
    }

    fn viewer_unknown(&self) -> Refusal {
        Refusal::bad_param(
            "viewer",
            format!(
                "desktop {} has no such viewer; open one with `view.open` and name it",
                self.id
            ),
        )
    }

    fn acquire(&mut self, ask: Ask) {
        let lease = ask.terms.lease;
        let known = ask
            .terms
            .viewer
            .is_none_or(|viewer| self.viewers.contains_key(&viewer));
        if !known {
            let refusal = self.viewer_unknown();
            return answer(ask.reply, Err(refusal));
        }
        let now = clock::now();
        let holds = self.arbiter.status().lease;
        if holds.is_some_and(|lease| lease.controller == ask.by.connection) {
            let refusal = Refusal::new(
                ErrorCode::HumanLeaseHeld,
                format!("this connection has control of desktop {} already", self.id),
            );
            let refusal = match self.lease_view() {
                Some(lease) => refusal.with("lease", lease),
                None => refusal,
            };
            return answer(ask.reply, Err(refusal));
        }
        let asked = if ask.of_holder {
            self.arbiter.request(now, ask.terms)
        } else {
            self.arbiter.acquire(now, ask.terms)
        };
        if let Err(refused) = asked {
            let refusal = self.refused(refused);
            return answer(ask.reply, Err(refusal));
        }
        let asker = Asker {
            by: ask.by,
            note: ask.note,
            ttl: ask.terms.ttl,
            token: ask.token,
            reply: ask.reply,
            survey: tokio::spawn(survey::survey(self.links.clone())),
            asks: None,
        };
        self.takeovers.askers.insert(lease, asker);
    }

    fn reclaim(
        &mut self,
        by: By,
        lease: LeaseProof,
        token: handover_protocol::Hidden,
        viewer: Option<handover_control::ViewerId>,
        now: Moment,
    ) -> Result<ControlAcquireResult, Refusal> {
        let renewed = self
            .arbiter
            .reclaim(now, lease.0, lease.1, by.connection, viewer)
            .map_err(|refused| self.refused(refused))?;
        let ttl = match &mut self.takeovers.holder {
            Some(holder) => {
                holder.by = by;
                holder.ttl
            }
            None => renewed.expires_in,
        };
        Ok(ControlAcquireResult {
            lease_id: lease.0.to_string().into(),
            token,
            epoch: renewed.epoch.0,
            ttl_ms: millis(ttl),
            heartbeat_ms: millis(Takeovers::heartbeat(ttl)),
            expires_in_ms: millis(renewed.expires_in),
            foreign_clients: Vec::new(),
        })
    }

    fn give_back(
        &mut self,
        by: By,
        how: GiveBack,
        lease: Option<LeaseProof>,
        note: Option<String>,
        reply: Answer<ControlReturnResult>,
    ) {
        if let Err(refused) = self.arbiter.give_back(clock::now(), how, lease) {
            let refusal = self.refused(refused);
            return answer(reply, Err(refusal));
        }
        let Some(holder) = &mut self.takeovers.holder else {
            // It had not been granted yet; nothing is left of it.
            let result = ControlReturnResult {
                reason: End::Cancelled,
                held_ms: 0,
                screenshot: None,
                epoch: self.arbiter.status().epoch.0,
            };
            return answer(reply, Ok(result));
        };
        holder.note = note.or(holder.note.take());
        holder.ended_by = holder.ended_by.take().or(Some(by));
        self.takeovers.returners.push(reply);
    }

    fn revoke(
        &mut self,
        by: Option<By>,
        force: bool,
        reply: Answer<handover_protocol::ControlStatusResult>,
        now: Moment,
    ) {
        self.arbiter.tick(now);
        let status: Status = self.arbiter.status();
        let others = status.lease.is_some_and(|lease| {
            by.as_ref()
                .is_none_or(|by| lease.controller != by.connection)
        });
        if others && !force {
            let refusal = Refusal::new(
                ErrorCode::HumanLeaseHeld,
                format!(
                    "another person has control of desktop {}; say `--force` (`force`: true) to take it away",
                    self.id
                ),
            );
            let refusal = match self.lease_view() {
                Some(lease) => refusal.with("lease", lease),
                None => refusal,
            };
            return answer(reply, Err(refusal));
        }
        self.ended_by(by);
        self.arbiter.revoke(now);
        self.takeovers.settlers.push(reply);
    }

    /// Notes who ends the takeover that is under way.
    fn ended_by(&mut self, by: Option<By>) {
        if let Some(holder) = &mut self.takeovers.holder {
            holder.ended_by = holder.ended_by.take().or(by);
        }
    }

    fn secret(&mut self, by: By, action: Action, lease: Option<LeaseProof>, reply: Answer<u64>) {
        let status = self.arbiter.status();
        let held = status.lease.map(|lease| (lease.lease, lease.controller));
        let right: Option<LeaseId> = match (held, lease) {
            (Some((held, _)), Some((named, token))) if held == named => {
                // The token is proven by a renewal, which a holder may always do.
                self.arbiter
                    .renew(clock::now(), named, token)
                    .ok()
                    .map(|_| held)
            }
            (Some((held, controller)), None) if controller == by.connection => Some(held),
            _ => None,
        };
        let admitted = right.filter(|&lease| {
            let source = InputSource::Lease(lease);
            self.arbiter.human_input(clock::now(), source).is_ok()
        });
        let Some(lease) = admitted else {
            let refusal = Refusal::new(
                ErrorCode::LeaseStale,
                format!(
                    "only the person in control of desktop {} can have something typed; take control first",
                    self.id
                ),
            );
            return answer(reply, Err(refusal));
        };
        let event = record::secret(&self.id, status.epoch, &by);
        self.links.store.append_soon(event);
        self.type_for_person(Running::new(Right::Lease(lease), by, action, reply));
    }

    fn look(&self, by: &By) -> Result<Look, Refusal> {
        if self.input.is_none() {
            return Err(self.gone_refusal());
        }
        let status = self.arbiter.status();
        let hidden = status.lease.filter(|lease| lease.private);
        if let Some(lease) = hidden
            && lease.controller != by.connection
        {
            let refusal = Refusal::new(
                ErrorCode::Private,
                format!(
                    "the person in control of desktop {} does not want to be watched; wait for the hand-back",
                    self.id
                ),
            );
            return Err(match self.lease_view() {
                Some(lease) => refusal.with("lease", lease),
                None => refusal,
            });
        }
        Ok(Look {
            epoch: status.epoch,
            human: status.lease.is_some(),
        })
    }

    fn connection_gone(&mut self, connection: ControllerId, now: Moment) {
        self.arbiter.controller_gone(now, connection);
        self.relay_lost(connection);
    }
}

/// A channel for one answer.
pub(super) fn reply<T>() -> (Answer<T>, oneshot::Receiver<Result<T, Refusal>>) {
    oneshot::channel()
}

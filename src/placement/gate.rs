//! The agent gate: our agent is in the room before anybody's phone rings.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::model::attempt::{AgentWanted, Gate};
use crate::model::id::{AgentName, RoomName};
use crate::model::verdict::TryFailure;
use crate::provider::{Call, Client, Kind, Lives, Participant, ParticipantState};

/// Dispatches the agent, once: two dispatches are two agents. After an unclear answer the
/// list of dispatches decides, and where that does not show ours, the try ends.
pub(super) async fn dispatch(
    client: &Client,
    room: &RoomName,
    agent: &AgentName,
    metadata: &str,
) -> Result<(), TryFailure> {
    match client.create_dispatch(room, agent, metadata).await {
        Call::Done(_) => Ok(()),
        Call::Refused(why) => Err(why.failure()),
        Call::Unclear(_) => match client.dispatches(room).await {
            Call::Done(Lives::Yes(listed))
                if listed
                    .iter()
                    .filter(|d| d.agent_name == agent.as_str())
                    .count()
                    == 1 =>
            {
                Ok(())
            }
            Call::Done(Lives::Yes(_) | Lives::No) | Call::Refused(_) | Call::Unclear(_) => {
                Err(TryFailure::PlatformUnreachable)
            }
        },
    }
}

/// Waits until our agent is in the room. The dispatch's job list is no evidence: on a real
/// platform it is still empty when the agent has joined.
pub(super) async fn wait(
    client: &Client,
    room: &RoomName,
    wanted: &AgentWanted,
    config: &Config,
) -> Result<(), TryFailure> {
    match wanted.gate {
        Gate::Dispatched => return Ok(()),
        Gate::Joined => {}
    }
    let begun = Instant::now();
    let ends = begun + Duration::from_millis(wanted.join_ms);
    let mut gaps = config.agent.looks.iter().copied();
    let mut gap = Duration::from_secs(1);
    let mut next = begun;
    loop {
        gap = gaps.next().unwrap_or(gap);
        next = (next + gap).min(ends);
        sleep_until(next).await;
        if let Call::Done(seen) = client.participants(room).await {
            match who_joined(&seen, &wanted.name) {
                Joined::Ours => return Ok(()),
                Joined::Other => return Err(TryFailure::AgentConflict),
                Joined::Nobody => {}
            }
        }
        if Instant::now() >= ends {
            return Err(TryFailure::AgentUnavailable);
        }
        next = next.max(Instant::now());
    }
}

/// Which agent is in the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Ours, alone.
    Ours,
    /// None.
    Nobody,
    /// One that is not ours, or a second one: the platform dispatches workers without a
    /// name to every room.
    Other,
}

/// Which agent is among `seen`.
pub(crate) fn who_joined(seen: &[Participant], wanted: &AgentName) -> Joined {
    let mut ours = 0_usize;
    let mut active = false;
    for agent in seen.iter().filter(|p| p.kind == Kind::Agent) {
        // An agent that has only begun to join has no name yet.
        match (&agent.agent_name, agent.state) {
            (Some(name), state) if name == wanted.as_str() => {
                ours += 1;
                active |= state == ParticipantState::Active;
            }
            (Some(_) | None, ParticipantState::Active) => return Joined::Other,
            (Some(_) | None, ParticipantState::Joining | ParticipantState::Other) => {}
        }
    }
    match ours {
        1 if active => Joined::Ours,
        0 | 1 => Joined::Nobody,
        _ => Joined::Other,
    }
}

//! The same list of requests without a ledger: what the platform and HTTP cost by
//! themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::load::{Act, Callee, WORKSPACE, attempt, number};
use super::{Error, Ground};
use crate::model::id::{
    AgentName, AttemptId, ContactId, Deployment, Nonce, OutreachId, Partition, SessionId,
    TrunkName, Workspace,
};
use crate::provider::http::{Http, HttpConfig};
use crate::provider::wire::Answer;
use crate::provider::{
    Call, Client, Credentials, Dial, Gone, Limits, METADATA_VERSION, NewRoom, RoutingMetadata,
    TrunkId,
};
use crate::runtime::clock::Clock;

/// As the service configures a ringing of 45 s.
const RINGING: Duration = Duration::from_secs(45);
const SERVER_DEADLINE: Duration = Duration::from_secs(65);
const TIMEOUT: Duration = Duration::from_secs(75);

/// Whoever calls without a ledger.
pub(super) struct Bare {
    client: Client,
    clock: Arc<dyn Clock>,
    deployment: Deployment,
    workspace: Workspace,
    agent: AgentName,
    trunk: TrunkId,
}

impl Bare {
    /// With the platform at `url`.
    pub(super) async fn new(ground: &Ground, url: &str) -> Result<Arc<Self>, Error> {
        let wire = Http::new(&HttpConfig::at(url)).map_err(|why| Error::Bare(why.to_string()))?;
        let credentials = Credentials {
            key: "devkey".to_owned(),
            secret: SecretString::from("devsecret_that_is_at_least_32_chars_long"),
        };
        let clock = Arc::clone(&ground.clock);
        let client = Client::new(
            Arc::new(wire),
            credentials,
            Arc::clone(&clock),
            Limits::default(),
        );
        let trunk: TrunkName = id("main")?;
        let trunk = (client.resolve_trunk(&trunk).await)
            .map_err(|error| Error::Bare(format!("{error:?}")))?;
        Ok(Arc::new(Self {
            client,
            clock,
            deployment: id("bare")?,
            workspace: id(WORKSPACE)?,
            agent: id("caller")?,
            trunk,
        }))
    }

    /// The whole list for the number `n`; up to the answer of the dial if `delete` is not set,
    /// and then the deletion follows in a task of its own, as in the service.
    pub(super) fn act(self: &Arc<Self>, ground: &Ground, whole: bool) -> Act {
        let (bare, tasks) = (Arc::clone(self), ground.tasks.clone());
        let ids = Arc::clone(&ground.ids);
        Arc::new(move |n| {
            let (bare, tasks) = (Arc::clone(&bare), tasks.clone());
            let nonce = Nonce(ids.uuid());
            Box::pin(async move {
                let room = bare.place(n, nonce).await?;
                let name = room.to_string();
                if whole {
                    bare.delete(&room).await?;
                } else {
                    tasks.spawn("bench.delete", async move {
                        // One that is left is seen by whoever waits for no rooms.
                        drop(bare.delete(&room).await);
                    });
                }
                Ok(name)
            })
        })
    }

    async fn place(&self, n: u64, nonce: Nonce) -> Result<crate::model::id::RoomName, Error> {
        let attempt: AttemptId = id(&attempt(n))?;
        let session = SessionId::of(&self.deployment, &self.workspace, &attempt, 1);
        let room = session.room(Partition(0));
        let contact: ContactId = id(&format!("contact-{n}"))?;
        let outreach: OutreachId = id("bench")?;
        let metadata = RoutingMetadata {
            v: METADATA_VERSION,
            deployment: self.deployment.clone(),
            workspace: self.workspace.clone(),
            attempt: attempt.clone(),
            session,
            contact,
            outreach,
            campaign: None,
            callee_identity: session.identity(),
            nonce,
        };
        let new = NewRoom {
            name: room.clone(),
            metadata: metadata.to_text(),
            empty_timeout: Duration::from_mins(3),
            departure_timeout: Duration::from_secs(20),
        };
        done("CreateRoom", self.client.create_room(&new).await)?;
        let dispatched = self.client.create_dispatch(&room, &self.agent, "").await;
        done("CreateDispatch", dispatched)?;
        let now = self.clock.now();
        let to = number(n, Callee::Busy);
        let reply = self
            .client
            .dial(Dial {
                trunk: &self.trunk,
                to: &to,
                from: None,
                room: &room,
                session,
                attempt: &attempt,
                ringing_timeout: RINGING,
                max_call_duration: Duration::from_hours(1),
                digits: None,
                headers: &BTreeMap::new(),
                hide_phone_number: true,
                token: self.client.mint_dial(now, now.plus(Duration::from_secs(5))),
                timeout: TIMEOUT,
                server_deadline: SERVER_DEADLINE,
                send_by: None,
            })
            .await;
        match reply.answer {
            Answer::Refused(refusal) if refusal.sip_code == Some(486) => Ok(room),
            other => Err(Error::Bare(format!("CreateSIPParticipant: {other:?}"))),
        }
    }

    async fn delete(&self, room: &crate::model::id::RoomName) -> Result<(), Error> {
        match self.client.delete_room(room).await {
            Gone::Deleted => Ok(()),
            other @ (Gone::NotThere | Gone::Refused(_) | Gone::Unclear(_)) => {
                Err(Error::Bare(format!("DeleteRoom: {other:?}")))
            }
        }
    }
}

fn done<T: std::fmt::Debug>(method: &str, call: Call<T>) -> Result<T, Error> {
    match call {
        Call::Done(value) => Ok(value),
        other @ (Call::Refused(_) | Call::Unclear(_)) => {
            Err(Error::Bare(format!("{method}: {other:?}")))
        }
    }
}

/// An id that is written in here.
fn id<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse()
        .map_err(|_| Error::Bare(format!("{text} is no id")))
}

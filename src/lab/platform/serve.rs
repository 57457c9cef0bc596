//! Requests on their way to a method: token, route, format, faults.

use std::time::Duration;

use prost::Message;
use serde::de::DeserializeOwned;

use super::agenda::Event;
use super::answer::{Answer, Code, Format, Refusal};
use super::encode::Shown;
use super::faults::Strike;
use super::machine::Platform;
use super::message::{CallTicket, Reply, Request};
use super::token::{Claims, claims};

/// Who asks, and how it is answered.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) claims: Claims,
    pub(super) format: Format,
    pub(super) timeout_ms: Option<u64>,
}

impl Caller {
    /// A missing grant is a 401, never a 403.
    #[expect(
        clippy::unused_self,
        reason = "reads as a question to the caller at every method"
    )]
    pub(super) fn may(&self, granted: bool) -> Result<(), Refusal> {
        if granted {
            Ok(())
        } else {
            Err(Refusal::no_grant())
        }
    }
}

/// The methods that `ringonce` and its operators use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    CreateRoom,
    ListRooms,
    DeleteRoom,
    UpdateRoomMetadata,
    ListParticipants,
    GetParticipant,
    RemoveParticipant,
    CreateDispatch,
    ListDispatch,
    DeleteDispatch,
    Dial,
    CreateTrunk,
    ListTrunks,
    GetTrunk,
    DeleteTrunk,
}

const METHODS: [(&str, Method); 15] = [
    ("livekit.RoomService/CreateRoom", Method::CreateRoom),
    ("livekit.RoomService/ListRooms", Method::ListRooms),
    ("livekit.RoomService/DeleteRoom", Method::DeleteRoom),
    (
        "livekit.RoomService/UpdateRoomMetadata",
        Method::UpdateRoomMetadata,
    ),
    (
        "livekit.RoomService/ListParticipants",
        Method::ListParticipants,
    ),
    ("livekit.RoomService/GetParticipant", Method::GetParticipant),
    (
        "livekit.RoomService/RemoveParticipant",
        Method::RemoveParticipant,
    ),
    (
        "livekit.AgentDispatchService/CreateDispatch",
        Method::CreateDispatch,
    ),
    (
        "livekit.AgentDispatchService/ListDispatch",
        Method::ListDispatch,
    ),
    (
        "livekit.AgentDispatchService/DeleteDispatch",
        Method::DeleteDispatch,
    ),
    ("livekit.SIP/CreateSIPParticipant", Method::Dial),
    ("livekit.SIP/CreateSIPOutboundTrunk", Method::CreateTrunk),
    ("livekit.SIP/ListSIPOutboundTrunk", Method::ListTrunks),
    ("livekit.SIP/GetSIPOutboundTrunk", Method::GetTrunk),
    ("livekit.SIP/DeleteSIPTrunk", Method::DeleteTrunk),
];

impl Platform {
    pub(super) fn serve(&mut self, request: Request) -> Reply {
        if self.now < self.down_until {
            return self.cut_soon();
        }
        let (name, method, caller) = match self.accept(&request) {
            Ok(accepted) => accepted,
            Err(answer) => return self.say(answer),
        };
        self.counts.request(name);
        match self.faults.strike(name, caller.format, &request.body) {
            None => self.call(method, &caller, &request.body),
            Some(Strike::LoseRequest) => self.cut_soon(),
            Some(Strike::Refuse(answer)) => self.say(answer),
            Some(Strike::LoseReply) => match self.call(method, &caller, &request.body) {
                Reply::Now(_) => self.cut_soon(),
                Reply::Later(ticket) => {
                    self.lost.insert(ticket);
                    Reply::Later(ticket)
                }
            },
            Some(Strike::Slow(held)) => match self.call(method, &caller, &request.body) {
                Reply::Now(response) => {
                    let ticket = self.ticket();
                    let at = self.now + held;
                    self.agenda.put(at, Event::Answer(ticket, response));
                    Reply::Later(ticket)
                }
                Reply::Later(ticket) => {
                    self.slowed.insert(ticket, held);
                    Reply::Later(ticket)
                }
            },
            Some(Strike::Late(held)) => {
                let ticket = self.ticket();
                let at = self.now + held;
                self.agenda.put(at, Event::Late(ticket, request));
                Reply::Later(ticket)
            }
        }
    }

    /// A request that was held up: its token is checked now.
    pub(super) fn serve_late(&mut self, ticket: CallTicket, request: &Request) {
        let reply = match self.accept(request) {
            Ok((_, method, caller)) => self.call(method, &caller, &request.body),
            Err(answer) => self.say(answer),
        };
        match reply {
            Reply::Now(response) => self.respond(ticket, response),
            Reply::Later(inner) => {
                self.aliases.insert(inner, ticket);
            }
        }
    }

    fn accept(&self, request: &Request) -> Result<(&'static str, Method, Caller), Answer> {
        let claims = claims(
            &self.settings,
            self.wall_micros(),
            request.authorization.as_deref(),
        )
        .map_err(|text| Answer::text(401, &text))?;
        let path = &request.path;
        let bad_route = |msg: String| {
            Refusal::own(Code::BadRoute, msg)
                .with("twirp_invalid_route", format!("POST {path}"))
                .answer()
        };
        let Some(route) = path.strip_prefix("/twirp/") else {
            return Err(Answer::text(404, "404 page not found\n"));
        };
        let Some((route, method)) = METHODS.iter().find(|(known, _)| *known == route) else {
            return Err(bad_route(format!("no handler for path \"{path}\"")));
        };
        let Some(format) = Format::of(&request.content_type) else {
            let got = &request.content_type;
            return Err(bad_route(format!("unexpected Content-Type: \"{got}\"")));
        };
        let name = route.rsplit('/').next().unwrap_or(route);
        let caller = Caller {
            claims,
            format,
            timeout_ms: request.timeout_ms,
        };
        Ok((name, *method, caller))
    }

    fn call(&mut self, method: Method, caller: &Caller, body: &[u8]) -> Reply {
        match method {
            Method::CreateRoom => self.run(caller, body, Self::create_room),
            Method::ListRooms => self.run(caller, body, Self::list_rooms),
            Method::DeleteRoom => self.run(caller, body, |on, by, ask| on.delete_room(by, &ask)),
            Method::UpdateRoomMetadata => self.run(caller, body, Self::update_room_metadata),
            Method::ListParticipants => {
                self.run(caller, body, |on, by, ask| on.list_participants(by, &ask))
            }
            Method::GetParticipant => {
                self.run(caller, body, |on, by, ask| on.get_participant(by, &ask))
            }
            Method::RemoveParticipant => {
                self.run(caller, body, |on, by, ask| on.remove_participant(by, &ask))
            }
            Method::CreateDispatch => self.run(caller, body, Self::create_dispatch),
            Method::ListDispatch => {
                self.run(caller, body, |on, by, ask| on.list_dispatch(by, &ask))
            }
            Method::DeleteDispatch => {
                self.run(caller, body, |on, by, ask| on.delete_dispatch(by, &ask))
            }
            Method::CreateTrunk => self.run(caller, body, Self::create_trunk),
            Method::ListTrunks => self.run(caller, body, |on, by, ask| on.list_trunks(by, &ask)),
            Method::GetTrunk => self.run(caller, body, |on, by, ask| on.get_trunk(by, &ask)),
            Method::DeleteTrunk => self.run(caller, body, |on, by, ask| on.delete_trunk(by, &ask)),
            Method::Dial => {
                let dialed = caller
                    .format
                    .read(body)
                    .and_then(|dial| self.dial(caller, dial));
                match dialed {
                    Ok(ticket) => Reply::Later(ticket),
                    Err(refusal) => self.refuse(&refusal),
                }
            }
        }
    }

    fn run<Q, A>(
        &mut self,
        caller: &Caller,
        body: &[u8],
        act: impl FnOnce(&mut Self, &Caller, Q) -> Result<A, Refusal>,
    ) -> Reply
    where
        Q: Message + Default + DeserializeOwned,
        A: Message + Shown,
    {
        let done = caller
            .format
            .read(body)
            .and_then(|request| act(self, caller, request));
        match done {
            Ok(message) => self.say(caller.format.write(&message)),
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) -> Reply {
        let answer = refusal.answer();
        if refusal.after == Duration::ZERO {
            return self.say(answer);
        }
        let ticket = self.ticket();
        let at = self.now + refusal.after;
        let date = self.wall_micros() + i64::try_from(refusal.after.as_micros()).unwrap_or(0);
        self.agenda.put(at, Event::Answer(ticket, answer.at(date)));
        Reply::Later(ticket)
    }

    fn say(&self, answer: Answer) -> Reply {
        Reply::Now(answer.at(self.wall_micros()))
    }

    fn cut_soon(&mut self) -> Reply {
        let ticket = self.ticket();
        self.agenda.put(self.now, Event::Cut(ticket));
        Reply::Later(ticket)
    }
}

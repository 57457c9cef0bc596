//! Tokens that callers hand back: of the next page, and of a place in a watch.
//!
//! Opaque, and bound to what they were given for by a checksum, so that a token of another
//! filter, a cut one or a made-up one is an error and never a wrong page. It keeps nobody
//! out: what a token names is asked for with the caller's own rights.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::core::{Cursor, Filter, PageCursor, Position, RoomFilter, Version};
use crate::model::attempt::ReviewCause;
use crate::model::id::Workspace;
use crate::model::time::Time;

/// Bytes of the checksum: enough that no accident passes.
const SUM: usize = 12;

/// The token of the page behind `cursor`.
pub(super) fn page_token(filter: &Filter, cursor: &PageCursor) -> String {
    let Cursor { value, key } = &cursor.0;
    seal(&list_scope(filter), &format!("{value}\0{key}"))
}

/// The cursor in a token; `None` if it is not one of this filter.
pub(super) fn page_cursor(filter: &Filter, token: &str) -> Option<PageCursor> {
    let place = open(&list_scope(filter), token)?;
    let (value, key) = place.split_once('\0')?;
    Some(PageCursor(Cursor {
        value: value.to_owned(),
        key: key.to_owned(),
    }))
}

/// The token of the page of rooms behind the one called `name`.
pub(super) fn rooms_token(filter: &RoomFilter, name: &str) -> String {
    seal(&rooms_scope(filter), name)
}

/// The room's name in a token; `None` if it is not one of this filter.
pub(super) fn rooms_after(filter: &RoomFilter, token: &str) -> Option<String> {
    open(&rooms_scope(filter), token)
}

/// The token of the page of reviews behind `cursor`.
pub(super) fn review_token(of: (&Workspace, Option<ReviewCause>), cursor: &PageCursor) -> String {
    let Cursor { value, key } = &cursor.0;
    seal(&reviews_scope(of), &format!("{value}\0{key}"))
}

/// The cursor in a token of reviews; `None` if it is not one of this filter.
pub(super) fn review_cursor(
    of: (&Workspace, Option<ReviewCause>),
    token: &str,
) -> Option<PageCursor> {
    let place = open(&reviews_scope(of), token)?;
    let (value, key) = place.split_once('\0')?;
    Some(PageCursor(Cursor {
        value: value.to_owned(),
        key: key.to_owned(),
    }))
}

/// The cursor of a watch behind `position`.
pub(super) fn watch_cursor(workspace: &Workspace, position: Position) -> String {
    let place = format!("{}.{}", position.version.0, position.ordinal);
    seal(&watch_scope(workspace), &place)
}

/// The position in a cursor; `None` if it is not one of this workspace's log.
pub(super) fn watch_position(workspace: &Workspace, cursor: &str) -> Option<Position> {
    let place = open(&watch_scope(workspace), cursor)?;
    let (version, ordinal) = place.split_once('.')?;
    Some(Position {
        version: Version(version.parse().ok()?),
        ordinal: ordinal.parse().ok()?,
    })
}

fn seal(scope: &str, payload: &str) -> String {
    let mut bytes = sum(scope, payload.as_bytes()).to_vec();
    bytes.extend_from_slice(payload.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn open(scope: &str, token: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (given, payload) = bytes.split_at_checked(SUM)?;
    if given != sum(scope, payload) {
        return None;
    }
    String::from_utf8(payload.to_vec()).ok()
}

fn sum(scope: &str, payload: &[u8]) -> [u8; SUM] {
    let mut hash = Sha256::new();
    hash.update(scope.as_bytes());
    hash.update([0]);
    hash.update(payload);
    let mut sum = [0; SUM];
    for (to, from) in sum.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    sum
}

/// What a page token is bound to: ids have no NUL, so no two filters share a text.
fn list_scope(filter: &Filter) -> String {
    let Filter {
        workspace,
        contact,
        campaign,
        outreach,
        states,
        from,
        to,
        descending,
    } = filter;
    let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
    let micros = |time: &Option<Time>| time.map(Time::as_micros);
    format!(
        "list\0{workspace}\0{}\0{}\0{}\0{}\0{:?}\0{:?}\0{descending}",
        contact.as_ref().map_or("", |id| id.as_str()),
        campaign.as_ref().map_or("", |id| id.as_str()),
        outreach.as_ref().map_or("", |id| id.as_str()),
        states.join(","),
        micros(from),
        micros(to),
    )
}

fn rooms_scope(filter: &RoomFilter) -> String {
    let RoomFilter {
        workspace,
        leaks_only,
    } = filter;
    let workspace = workspace.as_ref().map_or("", |id| id.as_str());
    format!("rooms\0{workspace}\0{leaks_only}")
}

fn reviews_scope((workspace, cause): (&Workspace, Option<ReviewCause>)) -> String {
    format!(
        "reviews\0{workspace}\0{}",
        cause.map_or("", ReviewCause::name)
    )
}

fn watch_scope(workspace: &Workspace) -> String {
    format!("watch\0{workspace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workspace: &str) -> Filter {
        Filter {
            workspace: workspace.parse().unwrap(),
            contact: None,
            campaign: None,
            outreach: None,
            states: Vec::new(),
            from: None,
            to: None,
            descending: false,
        }
    }

    #[test]
    fn a_token_opens_for_its_own_filter_alone() {
        let filter = of("w");
        let cursor = PageCursor(Cursor {
            value: "w/2026".into(),
            key: "a/w/a1".into(),
        });
        let token = page_token(&filter, &cursor);
        assert_eq!(page_cursor(&filter, &token), Some(cursor));
        let mut other = filter.clone();
        other.descending = true;
        assert_eq!(page_cursor(&other, &token), None);
        other = of("v");
        assert_eq!(page_cursor(&other, &token), None);
        for at in 0..token.len() {
            let mut broken = token.clone().into_bytes();
            broken[at] = if broken[at] == b'A' { b'B' } else { b'A' };
            let broken = String::from_utf8(broken).unwrap();
            assert_eq!(page_cursor(&filter, &broken), None, "{at}");
        }
        for token in ["", "A", "not base64!", "AAAAAAAAAAAAAAAA"] {
            assert_eq!(page_cursor(&filter, token), None);
        }
    }

    #[test]
    fn a_watch_cursor_is_a_position_of_its_workspace() {
        let (w, v) = ("w".parse().unwrap(), "v".parse().unwrap());
        let position = Position {
            version: Version(7),
            ordinal: 2,
        };
        let cursor = watch_cursor(&w, position);
        assert_eq!(watch_position(&w, &cursor), Some(position));
        assert_eq!(watch_position(&v, &cursor), None);
    }
}

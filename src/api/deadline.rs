//! The caller's deadline: read once, kept for whoever waits, and answered as what it is.
//!
//! tonic enforces `grpc-timeout` by itself and answers CANCELLED, which clients read as
//! their own doing. It polls what lies inside it first, so a layer inside it with the same
//! deadline wins and answers `DEADLINE_EXCEEDED`. What the caller no longer waits for goes on:
//! the handlers' work runs in tasks of its own.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::{Layer, Service};

use super::status;

/// When a call must be answered. In the extensions of every request.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    caller: Option<Instant>,
    cap: Instant,
}

impl Deadline {
    /// What the caller set, if anything; bounds a stream.
    #[must_use]
    pub const fn of_caller(&self) -> Option<Instant> {
        self.caller
    }

    /// The latest moment for an answer to a unary call: the caller's, or our own cap.
    #[must_use]
    pub fn of_answer(&self) -> Instant {
        self.caller.map_or(self.cap, |caller| caller.min(self.cap))
    }

    fn read(headers: &HeaderMap, cap: Duration) -> Self {
        let now = Instant::now();
        let far = now + cap;
        let caller = headers
            .get("grpc-timeout")
            .and_then(|value| timeout(value.to_str().ok()?));
        Self {
            // A deadline beyond the clock's end is none.
            caller: caller.and_then(|span| now.checked_add(span)),
            cap: far,
        }
    }
}

/// `TimeoutValue TimeoutUnit` of the gRPC wire format: at most 8 digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_hours(value)),
        "M" => Some(Duration::from_mins(value)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

/// Puts a [`DeadlineService`] around a service.
#[derive(Debug, Clone)]
pub struct DeadlineLayer {
    cap: Duration,
}

impl DeadlineLayer {
    /// A layer that lets no unary call take longer than `cap`.
    #[must_use]
    pub const fn new(cap: Duration) -> Self {
        Self { cap }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = DeadlineService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        DeadlineService {
            inner,
            cap: self.cap,
        }
    }
}

/// Answers in time, and gives a reason to errors that have none.
#[derive(Debug, Clone)]
pub struct DeadlineService<S> {
    inner: S,
    cap: Duration,
}

impl<S: NamedService> NamedService for DeadlineService<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<Request<B>> for DeadlineService<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let deadline = Deadline::read(request.headers(), self.cap);
        request.extensions_mut().insert(deadline);
        let inner = self.inner.call(request);
        Box::pin(async move {
            tokio::select! {
                biased;
                response = inner => response.map(with_reason),
                () = tokio::time::sleep_until(deadline.of_answer()) => {
                    Ok(status::deadline_exceeded().into_http())
                }
            }
        })
    }
}

/// An error that the codec answered is a response without a body: its headers say all.
fn with_reason(response: Response<Body>) -> Response<Body> {
    Status::from_header_map(response.headers())
        .and_then(|status| status::of_codec(&status))
        .map_or(response, Status::into_http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_wire_format_has_them() {
        for (text, expected) in [
            ("1H", Some(Duration::from_hours(1))),
            ("2M", Some(Duration::from_mins(2))),
            ("3S", Some(Duration::from_secs(3))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("123456789S", None),
            ("S", None),
            ("", None),
            ("+1S", None),
            ("1", None),
            ("1ß", None),
            ("1s", None),
        ] {
            assert_eq!(timeout(text), expected, "{text:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_may_shorten_the_cap_and_not_lengthen_it() {
        let cap = Duration::from_mins(1);
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", value.parse().unwrap());
            Deadline::read(&headers, cap).of_answer() - Instant::now()
        };
        assert_eq!(of("5S"), Duration::from_secs(5));
        assert_eq!(of("99999999H"), cap);
        assert_eq!(of("junk"), cap);
    }
}

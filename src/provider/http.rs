//! The wire over HTTP/1.1, made so that nothing below it sends twice.
//!
//! - The dial has an HTTP client of its own without idle connections: one connection a
//!   dial, so that no pool can send it again on another one, and a broken connection loses
//!   one dial.
//! - No redirect is followed (a 307 would repeat the dial on another host), no proxy of
//!   the environment is used, and `reqwest`'s own retries are off.
//! - The time limit is `tokio`'s, over the whole answer, so that a test owns it.
//!
//! [`NotSent`] is said only where no TCP or TLS connection stood. From the first byte on,
//! whatever happens is [`Lost`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderValue, USER_AGENT};
use reqwest::{Response, Url};
use rustls::pki_types::CertificateDer;
use secrecy::ExposeSecret;

use super::twirp;
use super::wire::{Answer, Lost, Method, NotSent, Reply, Request, Wire};
use crate::model::time::Time;

/// The deadline that a Twirp server of LiveKit's shall keep, in milliseconds.
const SERVER_DEADLINE: &str = "x-twirp-timeout-ms";

/// Where LiveKit is, and the limits of the connections to it.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Its address: `https`, `http`, `wss` or `ws`, with a base path if it is behind a gateway.
    pub url: String,
    /// How long a connection may take to stand, TLS included.
    pub connect_timeout: Duration,
    /// The longest answer that is read, in bytes; a longer one is lost.
    pub answer_max: usize,
    /// How many idle connections the safe requests keep: as many as there are requests at
    /// once under load, or each beyond it makes a connection and throws it away.
    pub idle_max: usize,
    /// Certificate authorities beside the public ones, for a LiveKit with a private one.
    pub roots: Vec<CertificateDer<'static>>,
}

impl HttpConfig {
    /// LiveKit at `url`, with the default limits.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connect_timeout: Duration::from_secs(3),
            answer_max: 1024 * 1024,
            idle_max: 256,
            roots: Vec::new(),
        }
    }
}

/// Why there is no wire.
#[derive(Debug, thiserror::Error)]
pub enum BadHttp {
    /// The address is no URL.
    #[error("the address is no URL: {0}")]
    Url(String),
    /// The address has another scheme than the four.
    #[error("the address must begin with https, http, wss or ws, not {0}")]
    Scheme(String),
    /// The address carries what does not belong there.
    #[error("the address must have no user, password, query or fragment")]
    Extra,
    /// A certificate authority could not be read.
    #[error("a certificate authority could not be read")]
    Root(#[source] rustls::Error),
    /// TLS could not be set up.
    #[error("TLS could not be set up")]
    Tls(#[source] rustls::Error),
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be made")]
    Client(#[source] reqwest::Error),
}

/// LiveKit over HTTP.
pub struct Http {
    base: Url,
    /// The address of each method, made once.
    urls: BTreeMap<Method, Url>,
    /// For the dial: no idle connections.
    dial: reqwest::Client,
    /// For everything else.
    pool: reqwest::Client,
    answer_max: usize,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

impl Http {
    /// A wire to LiveKit. It connects to nothing yet.
    ///
    /// # Errors
    ///
    /// An address that is none, or certificate authorities that cannot be read.
    pub fn new(config: &HttpConfig) -> Result<Self, BadHttp> {
        let tls = tls(&config.roots)?;
        let client = |idle_max| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .http1_only()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .connect_timeout(config.connect_timeout)
                .pool_max_idle_per_host(idle_max)
                .build()
                .map_err(BadHttp::Client)
        };
        let base = base(&config.url)?;
        let urls = Method::ALL.map(|method| {
            let mut url = base.clone();
            // A gateway's path is kept before the method's.
            let path = base.path().trim_end_matches('/');
            url.set_path(&format!("{path}{}", method.path()));
            (method, url)
        });
        Ok(Self {
            base,
            urls: urls.into(),
            dial: client(0)?,
            pool: client(config.idle_max)?,
            answer_max: config.answer_max,
        })
    }

    fn client(&self, method: Method) -> &reqwest::Client {
        match method {
            Method::Dial => &self.dial,
            Method::CreateRoom
            | Method::DeleteRoom
            | Method::ListRooms
            | Method::GetParticipant
            | Method::ListParticipants
            | Method::CreateDispatch
            | Method::ListDispatch
            | Method::ListTrunks => &self.pool,
        }
    }

    async fn exchange(&self, request: Request) -> Reply {
        let Some(post) = self.post(request) else {
            return undated(Answer::NotSent(NotSent::Malformed));
        };
        match post.send().await {
            Ok(response) => {
                let date = date(&response);
                let answer = self.read(response).await;
                Reply { answer, date }
            }
            Err(why) if why.is_connect() => undated(Answer::NotSent(NotSent::NoConnection)),
            Err(why) if why.is_builder() => undated(Answer::NotSent(NotSent::Malformed)),
            Err(_) => undated(Answer::Lost(Lost::Broken)),
        }
    }

    /// The request; `None` if the token is no text for a header, or the method has no address.
    fn post(&self, request: Request) -> Option<reqwest::RequestBuilder> {
        let url = self.urls.get(&request.method)?.clone();
        let bearer = format!("Bearer {}", request.token.expose_secret());
        let mut bearer = HeaderValue::try_from(bearer).ok()?;
        bearer.set_sensitive(true);
        let mut post = self
            .client(request.method)
            .post(url)
            .header(AUTHORIZATION, bearer)
            .header(CONTENT_TYPE, twirp::PROTOBUF)
            .header(USER_AGENT, concat!("ringonce/", env!("CARGO_PKG_VERSION")));
        if let Some(deadline) = request.server_deadline {
            post = post.header(SERVER_DEADLINE, deadline.as_millis().to_string());
        }
        Some(post.body(request.body))
    }

    async fn read(&self, mut response: Response) -> Answer {
        let status = response.status().as_u16();
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > self.answer_max => {
                    return Answer::Lost(Lost::Unreadable);
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return twirp::read(status, content_type.as_deref(), body),
                Err(_) => return Answer::Lost(Lost::Broken),
            }
        }
    }
}

#[async_trait]
impl Wire for Http {
    async fn send(&self, request: Request) -> Reply {
        // While a connection is still being made when the time passes, nothing was sent; but
        // that cannot be told from here, and Lost is the safe word.
        tokio::time::timeout(request.timeout, self.exchange(request))
            .await
            .unwrap_or_else(|_| undated(Answer::Lost(Lost::Timeout)))
    }
}

fn undated(answer: Answer) -> Reply {
    Reply { answer, date: None }
}

/// The `Date` of an answer (RFC 9110, 6.6.1: the format is that of RFC 5322).
fn date(response: &Response) -> Option<Time> {
    let text = response.headers().get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(Time::from_micros(date.timestamp().as_microsecond()))
}

/// The address that requests are built on.
fn base(text: &str) -> Result<Url, BadHttp> {
    let url = Url::parse(text).map_err(|why| BadHttp::Url(why.to_string()))?;
    let scheme = match url.scheme() {
        "https" | "wss" => "https",
        "http" | "ws" => "http",
        other => return Err(BadHttp::Scheme(other.to_owned())),
    };
    let extra = !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some();
    if extra {
        return Err(BadHttp::Extra);
    }
    // `Url` refuses to turn some schemes into others, so the text is turned instead.
    let rest = url
        .as_str()
        .split_once(':')
        .map(|(_, rest)| rest)
        .unwrap_or_default();
    Url::parse(&format!("{scheme}:{rest}")).map_err(|why| BadHttp::Url(why.to_string()))
}

/// TLS on ring, with the public roots and `extra`; installs nothing for the whole process.
fn tls(extra: &[CertificateDer<'static>]) -> Result<rustls::ClientConfig, BadHttp> {
    let mut roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for root in extra {
        roots.add(root.clone()).map_err(BadHttp::Root)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BadHttp::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

//! The gRPC server: the services, their limits, and an end that comes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::{Builder, v1, v1alpha};

use super::core::Core;
use super::deadline::DeadlineLayer;
use super::health;
use super::limits::Limits;
use super::operations_service::Operations;
use super::placement_service::Placement;
use super::proto;
use super::proto::operations_service_server::{self, OperationsServiceServer};
use super::proto::placement_service_server::{self, PlacementServiceServer};
use crate::runtime::clock::Clock;
use crate::runtime::streak::Streak;
use crate::runtime::tasks::Tasks;

/// The services of ours whose health is told, as a whole under the empty name.
const SERVICES: [&str; 2] = [
    placement_service_server::SERVICE_NAME,
    operations_service_server::SERVICE_NAME,
];

/// What the server stands on.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Decides.
    pub core: Arc<dyn Core>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Runs what must outlive its caller.
    pub tasks: Tasks,
}

/// Why the server could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The descriptors for reflection are damaged: a fault of the build.
    #[error("the descriptors for reflection cannot be read")]
    Reflection(#[source] tonic_reflection::server::Error),
    /// The transport failed.
    #[error("the gRPC transport failed")]
    Transport(#[source] tonic::transport::Error),
}

/// Serves on `listener` until `shutdown`, then ends within `limits.close_within`, whatever
/// its peers do.
///
/// When the core drains or `shutdown` comes, health says `NOT_SERVING` and whoever waits or
/// watches is answered; new calls are refused by the core. At `shutdown` connections are
/// asked to close, and those that do not are left behind.
///
/// # Errors
///
/// The transport failed.
pub async fn serve(
    listener: TcpListener,
    parts: Parts,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let (close, closing) = watch::channel(false);
    let mut draining = parts.core.draining();
    let core = Arc::clone(&parts.core);
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in SERVICES {
        health
            .set_service_status(service, ServingStatus::Serving)
            .await;
    }
    let (reflection, reflection_alpha) = reflection(&limits)?;
    let close_within = limits.close_within;
    let (stop, mut stopped) = watch::channel(false);
    let serving = builder(&limits)
        .layer(DeadlineLayer::new(limits.deadline_max))
        .add_service(operations(&parts, &limits))
        .add_service(placement(parts, limits, closing))
        .add_service(health_service)
        .add_optional_service(reflection)
        .add_optional_service(reflection_alpha)
        .serve_with_incoming_shutdown(connections(listener), async move {
            // An error means that the sender is gone, and so is this server.
            drop(stopped.wait_for(|stop| *stop).await);
        });

    // Two steps: with the drain whoever waits is answered, with the shutdown the
    // connections close. The second always brings the first.
    let leave = async {
        let mut health = health;
        tokio::pin!(shutdown);
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = async { drop(draining.wait_for(|drains| *drains).await) } => {
                take_leave(&health, &close).await;
                shutdown.await;
            }
            () = health::follow(core.as_ref(), &health) => {}
        }
        take_leave(&health, &close).await;
        // Ends those who watch it, or each of them would hold its connection.
        health.clear_service_status("").await;
        for service in SERVICES {
            health.clear_service_status(service).await;
        }
        stop.send_replace(true);
        // A connection that sent nothing, or a peer that does not react, holds a graceful
        // end for ever (hyper issue 4170), so our own clock bounds it.
        tokio::time::sleep(close_within).await;
    };
    tokio::select! {
        biased;
        served = serving => served.map_err(Error::Transport),
        () = leave => {
            tracing::info!("connections that did not close in time are left behind");
            Ok(())
        }
    }
}

async fn take_leave(health: &HealthReporter, close: &watch::Sender<bool>) {
    for service in [""].into_iter().chain(SERVICES) {
        health
            .set_service_status(service, ServingStatus::NotServing)
            .await;
    }
    close.send_replace(true);
}

fn builder(limits: &Limits) -> Server {
    Server::builder()
        .max_concurrent_streams(limits.streams_max)
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
}

/// Reflection as new tools ask for it, and as older ones do.
fn reflection(
    limits: &Limits,
) -> Result<
    (
        Option<v1::ServerReflectionServer<impl v1::ServerReflection + use<>>>,
        Option<v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection + use<>>>,
    ),
    Error,
> {
    let configure = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // The details of errors, which a client without their types shows as bytes.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    let on = limits.reflection;
    let new = on.then(|| configure().build_v1()).transpose();
    let old = on.then(|| configure().build_v1alpha()).transpose();
    Ok((
        new.map_err(Error::Reflection)?,
        old.map_err(Error::Reflection)?,
    ))
}

fn placement(
    parts: Parts,
    limits: Limits,
    closing: watch::Receiver<bool>,
) -> PlacementServiceServer<Placement> {
    let (max_in, max_out) = (limits.message_in_max, limits.message_out_max);
    let watches = Arc::new(Semaphore::new(limits.watches_max));
    PlacementServiceServer::new(Placement {
        core: parts.core,
        clock: parts.clock,
        tasks: parts.tasks,
        limits: Arc::new(limits),
        watches,
        closing,
    })
    .max_decoding_message_size(max_in)
    .max_encoding_message_size(max_out)
}

fn operations(parts: &Parts, limits: &Limits) -> OperationsServiceServer<Operations> {
    OperationsServiceServer::new(Operations {
        core: Arc::clone(&parts.core),
        clock: Arc::clone(&parts.clock),
        tasks: parts.tasks.clone(),
        limits: limits.clone(),
    })
    .max_decoding_message_size(limits.message_in_max)
    .max_encoding_message_size(limits.message_out_max)
}

/// Accepts for ever. An error of `accept` (out of descriptors, as a rule) passes when
/// connections close, so it is waited for and not spun upon.
fn connections(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> {
    stream::unfold((listener, Streak::default()), |(listener, refused)| async {
        loop {
            match listener.accept().await {
                Ok((connection, _)) => {
                    let _told = refused.ended();
                    let connection = connection.set_nodelay(true).map(|()| connection);
                    return Some((connection, (listener, refused)));
                }
                Err(error) => {
                    if let Some(told) = refused.failed() {
                        let count = told.count;
                        tracing::warn!(%error, count, "a connection could not be accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    })
}

//! What health says while nothing drains: whether calls can be placed.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::core::Core;
use super::proto::placement_service_server::SERVICE_NAME as PLACEMENT;

/// How often the core is asked: whoever asks for health does so every few seconds.
const EVERY: Duration = Duration::from_secs(1);

/// Follows `core`, for as long as it is polled: where nothing can be written down, nothing can
/// be placed, and neither the whole nor the placement service is `SERVING`. Operations still
/// are: they show what is wrong.
pub(super) async fn follow(core: &dyn Core, health: &HealthReporter) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut serves = true;
    loop {
        ticks.tick().await;
        let refusal = core.refuses();
        if serves == refusal.is_none() {
            continue;
        }
        serves = refusal.is_none();
        let status = if serves {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for service in ["", PLACEMENT] {
            health.set_service_status(service, status).await;
        }
        if let Some(why) = refusal {
            tracing::error!(
                event = "health.not_serving",
                "the store takes nothing, so nothing can be placed, and health is NOT_SERVING: \
                 {why}"
            );
        } else {
            tracing::info!(
                event = "health.serving",
                "the store takes what is written again, and health is SERVING"
            );
        }
    }
}

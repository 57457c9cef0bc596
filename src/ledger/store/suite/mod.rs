//! What every store must do, as plain functions over a [`Harness`].
//!
//! [`store_suite!`](crate::store_suite) makes one test of each for one store. A harness
//! may restart the store before every call, and then the same cases prove that a crash
//! between any two calls changes nothing.
//!
//! A case panics where the store breaks a promise: that is its answer.
#![expect(
    clippy::missing_panics_doc,
    reason = "a case is a test: a panic is how it fails"
)]

mod commits;
mod draft;
mod events;
mod histories;
mod queues;
mod scans;

use std::sync::Arc;

use async_trait::async_trait;

use super::Store;

pub use commits::*;
pub use events::*;
pub use histories::*;
pub use queues::*;
pub use scans::*;

/// A store under test, new and empty at first.
#[async_trait]
pub trait Harness: Send {
    /// The store. It may be restarted by this call: a handle from an earlier one is
    /// closed then.
    async fn store(&mut self) -> Arc<dyn Store>;

    /// Restarts the store: another handle on what is durable, and the earlier one closed.
    async fn restart(&mut self) -> Arc<dyn Store>;
}

/// Makes a module `$name` with one `#[tokio::test]` a case; `$harness` is an expression
/// that makes a new [harness](crate::ledger::store::suite::Harness).
#[macro_export]
macro_rules! store_suite {
    ($name:ident, $harness:expr) => {
        $crate::store_suite! { @cases $name, $harness,
            a_commit_writes_all_its_records,
            an_expected_absence_holds_or_conflicts,
            an_old_version_conflicts_and_changes_nothing,
            a_record_that_is_only_read_is_expected_too,
            a_conflict_answers_with_what_stands,
            a_deletion_is_conditional_and_removes,
            a_repetition_answers_with_the_first_number,
            a_repetition_over_newer_records_conflicts,
            a_deleted_record_is_no_repetition,
            versions_grow_and_are_shared,
            a_newer_format_is_not_overwritten,
            what_breaks_the_rules_is_refused,
            two_writers_of_one_key_have_one_winner,
            events_are_read_in_order_and_in_pages,
            the_log_says_where_it_begins_and_ends,
            trimming_events_leaves_no_hole_and_keeps_the_last,
            trimming_records_spares_the_due_and_the_young,
            another_epoch_applies_nothing,
            a_new_epoch_is_found_by_the_next_opening,
            what_was_written_is_there_after_a_restart,
            a_closed_store_says_so,
            a_store_describes_itself,
            due_records_come_earliest_first,
            a_lease_puts_off_and_a_commit_ends_it,
            queues_do_not_mix,
            the_next_wake_up_counts_leases,
            a_scan_walks_its_range_both_ways,
            pages_meet_without_gap_or_overlap,
            index_entries_follow_their_record,
        }
    };
    (@cases $name:ident, $harness:expr, $($case:ident),* $(,)?) => {
        mod $name {
            $(
                #[tokio::test]
                async fn $case() {
                    let mut harness = $harness;
                    $crate::ledger::store::suite::$case(&mut harness).await;
                }
            )*
        }
    };
}

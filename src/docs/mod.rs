//! The long pages: how it is built, what it promises, why it is so.

pub mod architecture {
    #![doc = include_str!("architecture.md")]
}

pub mod guarantees {
    #![doc = include_str!("guarantees.md")]
}

pub mod cases {
    #![doc = include_str!("cases.md")]
}

pub mod decisions {
    #![doc = include_str!("decisions.md")]
}

pub mod states {
    #![doc = include_str!("states.md")]
}

#[expect(
    clippy::doc_markdown,
    reason = "the headings are the reasons themselves, as callers get them"
)]
pub mod errors {
    #![doc = include_str!("errors.md")]
}

//! The long pages: how it is built, what it promises, why it is so.

pub mod architecture {
    #![doc = include_str!("architecture.md")]
}

pub mod guarantees {
    #![doc = include_str!("guarantees.md")]
}

pub mod decisions {
    #![doc = include_str!("decisions.md")]
}

pub mod states {
    #![doc = include_str!("states.md")]
}

pub mod errors {
    #![doc = include_str!("errors.md")]
}

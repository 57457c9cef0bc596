//! The API from outside, over a core that decides what the test says.

mod calls;
mod command_line;
mod fake;
mod manners;
mod reads;
mod reviews;
mod rooms;
mod watches;

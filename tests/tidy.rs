//! The house rules that a test can hold by reading the sources.
//!
//! Each rule is a function from files to what offends it. Its test asks it about the
//! repository, where nothing may, and about one that is worse by a line, where something must.

#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/texts.rs"]
mod texts;

use source::{File, repository};

type Rule = fn(&[File]) -> Vec<String>;

/// Asserts that the repository keeps a rule, and would break it with `text` at the end of the
/// file at `path`, or in a new file there.
fn holds(rule: Rule, path: &str, text: &str) {
    let offences = rule(repository());
    assert!(offences.is_empty(), "{}", offences.join("\n"));
    let mut worse = repository().to_vec();
    match worse.iter_mut().find(|file| file.path == path) {
        Some(file) => file.text.push_str(text),
        None => worse.push(File::new(path, text)),
    }
    assert!(!rule(&worse).is_empty(), "the rule does not see {text}");
}

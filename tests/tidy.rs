//! The house rules that a test can hold by reading the sources.
//!
//! Each rule is a function from files to what offends it. Its test asks it about the
//! repository, where nothing may, and about a made-up file, where something must.

#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/texts.rs"]
mod texts;

use source::{File, repository};

type Rule = fn(&[File]) -> Vec<String>;

/// Asserts that the repository keeps a rule, and that the made-up file breaks it.
fn holds(rule: Rule, path: &str, broken: &str) {
    let offences = rule(&repository());
    assert!(offences.is_empty(), "{}", offences.join("\n"));
    assert!(
        !rule(&[File::new(path, broken)]).is_empty(),
        "the rule does not see {broken}"
    );
}

//! Files as the rules see them: their text, their code without comments, the paths they use.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A file of the repository; its path is relative and has forward slashes.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.ends_in("rs")
    }

    pub(crate) fn ends_in(&self, extension: &str) -> bool {
        self.path
            .rsplit_once('.')
            .is_some_and(|(_, ext)| ext == extension)
    }

    /// `ledger` of `src/ledger/store/mod.rs`, `node` of `src/node.rs`; none outside `src/`
    /// and for the crate's root.
    pub(crate) fn module(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        let first = below.split('/').next()?.trim_end_matches(".rs");
        (first != "lib" && first != "main").then_some(first)
    }

    /// The lines without their comments, which may name anything. A `//` after a colon is
    /// part of an address.
    pub(crate) fn code(&self) -> String {
        let mut code = String::new();
        for line in self.text.lines() {
            let end = line
                .match_indices("//")
                .map(|(at, _)| at)
                .find(|at| !line[..*at].ends_with(':'))
                .unwrap_or(line.len());
            code.push_str(&line[..end]);
            code.push('\n');
        }
        code
    }

    /// Every path below `root::`, groups spread out: `{a::{B, c::D}, e}` is `a::B`, `a::c::D`
    /// and `e`.
    pub(crate) fn paths(&self, root: &str) -> Vec<String> {
        let code = self.code();
        let start = format!("{root}::");
        let mut found = Vec::new();
        for (at, _) in code.match_indices(&start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            spread(&code[at + start.len()..], "", &mut found);
        }
        found
    }
}

/// Reads one tree of a `use` from the start of `text`; gives back what follows it.
fn spread<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
            if rest.is_empty() {
                return rest;
            }
            rest = spread(rest, prefix, found);
            // An alias, then the comma; a sign that belongs to neither ends the group.
            let next = rest.find([',', '}']).unwrap_or(rest.len());
            rest = rest[next..].strip_prefix(',').unwrap_or(&rest[next..]);
        }
    }
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*'))
        .unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    match text[end..].strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => spread(rest, &format!("{path}::"), found),
        Some(_) | None => {
            found.push(path);
            &text[end..]
        }
    }
}

/// Every text file of the repository: no build output, and of the hidden folders only that
/// for continuous integration.
pub(crate) fn repository() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        read(root, root, &mut files);
        files
    })
}

fn read(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository can be read") {
        let path = entry.expect("an entry of it, too").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = path.is_dir() && name.starts_with('.') && name != ".ci";
        if hidden || name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            read(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path
                .strip_prefix(root)
                .expect("it was found below the root");
            files.push(File::new(&path.to_string_lossy().replace('\\', "/"), &text));
        }
    }
}

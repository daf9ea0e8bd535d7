//! The layer table of DESIGN.md, checked against what `src` names.
//!
//! A rule is checked by the words of the source, so a path in a doc comment does not count, and a path that is built by a
//! macro is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Layer or file path (`producer::send_kernel`) to the paths it may use; `*` allows all.
type Table = BTreeMap<String, BTreeSet<String>>;

#[test]
fn sources_keep_to_the_layer_table_of_the_design() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let design = fs::read_to_string(root.join("DESIGN.md")).expect("DESIGN.md is readable");
    let table = parse_table(&design).expect("DESIGN.md holds the layer table");
    let mut broken = Vec::new();
    for (path, text) in sources(&root.join("src")).expect("src is readable") {
        broken.extend(violations(&path, &text, &table));
    }
    assert!(
        broken.is_empty(),
        "{} broken layer rules:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

/// Everything wrong with one file, whose path is relative to `src`.
fn violations(path: &str, text: &str, table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    let module = module_of(path);
    let layer = module.split("::").next().unwrap_or_default().to_owned();
    for name in module.split("::") {
        if FORBIDDEN_MODULES.contains(&name) {
            found.push(format!(
                "{path}: a module called {name} says nothing about what is in it"
            ));
        }
    }
    let Some(allowed) = table.get(&layer) else {
        found.push(format!(
            "{path}: layer {layer} is not in the table of DESIGN.md"
        ));
        return found;
    };
    let words = tokens(text);
    for (line, used) in paths(&words) {
        if let Some(inside) = inside_crate(&used, &module) {
            let target = inside.split("::").next().unwrap_or_default();
            if !table.contains_key(target) {
                if used.starts_with("crate::") && layer != "lib" {
                    found.push(format!(
                        "{path}:{line}: {inside} hides its layer, name it by its path"
                    ));
                }
            } else if target != layer && !permits(allowed, inside) {
                found.push(format!("{path}:{line}: {layer} may not use {inside}"));
            }
            continue;
        }
        for (forbidden, home) in FORBIDDEN_PATHS {
            if begins_with(&used, forbidden)
                && layer != *home
                && !begins_with(&used, "std::thread::panicking")
            {
                found.push(format!(
                    "{path}:{line}: {used} may be named in src/{home} only"
                ));
            }
        }
    }
    found
}

/// The part of a path below the crate root, which `crate` and enough `super`s lead to.
fn inside_crate<'p>(used: &'p str, module: &str) -> Option<&'p str> {
    if let Some(inside) = used.strip_prefix("crate::") {
        return Some(inside);
    }
    let mut rest = used;
    for _ in module.split("::") {
        rest = rest.strip_prefix("super::")?;
    }
    Some(rest.trim_start_matches("super::"))
}

fn permits(allowed: &BTreeSet<String>, used: &str) -> bool {
    allowed
        .iter()
        .any(|entry| entry == "*" || begins_with(used, entry))
}

/// Whether `path` is `prefix` or lies below it.
fn begins_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `producer/send_kernel.rs` and `producer/send_kernel/mod.rs` are both `producer::send_kernel`.
fn module_of(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// The block that follows the heading: one `layer -> allowed, allowed` a line, `-` for nothing.
fn parse_table(design: &str) -> Option<Table> {
    let section = design.split(HEADING).nth(1)?;
    let block = section.split("```").nth(1)?;
    let mut table = Table::new();
    for line in block.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let (layer, allowed) = line.split_once("->")?;
        let allowed = allowed
            .split(',')
            .map(str::trim)
            .filter(|entry| *entry != "-");
        table.insert(
            layer.trim().to_owned(),
            allowed.map(str::to_owned).collect(),
        );
    }
    (!table.is_empty()).then_some(table)
}

/// Every path of the file with its line, groups written out: `use crate::{a::b, c}` gives `crate::a::b` and `crate::c`.
fn paths(words: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let starts =
            is_name(&words[at].1) && words.get(at + 1).is_some_and(|(_, word)| word == "::");
        if starts {
            at = path_at(words, at, String::new(), &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads the path that begins at `at` below `prefix`, and returns where it ends.
fn path_at(
    words: &[(usize, String)],
    mut at: usize,
    mut prefix: String,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let line = words.get(at).map_or(0, |(line, _)| *line);
    while let Some((_, word)) = words.get(at) {
        if word == "{" && prefix.ends_with("::") {
            return group_at(words, at + 1, &prefix, found);
        }
        if !is_name(word) && word != "*" {
            break;
        }
        prefix.push_str(word);
        at += 1;
        if words.get(at).is_none_or(|(_, word)| word != "::") {
            break;
        }
        prefix.push_str("::");
        at += 1;
    }
    found.push((line, prefix.trim_end_matches("::").to_owned()));
    at
}

fn group_at(
    words: &[(usize, String)],
    mut at: usize,
    prefix: &str,
    found: &mut Vec<(usize, String)>,
) -> usize {
    while let Some((_, word)) = words.get(at) {
        match word.as_str() {
            "}" => return at + 1,
            _ if is_name(word) || word == "*" => {
                at = path_at(words, at, prefix.to_owned(), found);
                if words.get(at).is_some_and(|(_, word)| word == "as") {
                    at += 2;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single characters with their lines; comments, strings and character literals are left out.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let from = at;
        match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => {
                at += chars[at..]
                    .iter()
                    .position(|c| *c == '\n')
                    .unwrap_or(chars.len() - at);
            }
            '/' if chars.get(at + 1) == Some(&'*') => at = after_block_comment(&chars, at),
            '"' => at = after_string(&chars, at + 1),
            'r' | 'b' if raw_string_start(&chars, at).is_some() => {
                let (hashes, text) = raw_string_start(&chars, at).unwrap_or((0, at + 1));
                at = after_raw_string(&chars, hashes, text);
            }
            '\'' if chars.get(at + 1) == Some(&'\\') => {
                at += 3 + chars[at + 3..].iter().position(|c| *c == '\'').unwrap_or(0) + 1;
            }
            '\'' if chars.get(at + 2) == Some(&'\'') => at += 3,
            c if c.is_alphanumeric() || c == '_' => {
                let rest = chars[at..].iter();
                at += rest
                    .take_while(|c| c.is_alphanumeric() || **c == '_')
                    .count();
                found.push((line, chars[from..at].iter().collect()));
            }
            ':' if chars.get(at + 1) == Some(&':') => {
                at += 2;
                found.push((line, "::".to_owned()));
            }
            c => {
                at += 1;
                if !c.is_whitespace() {
                    found.push((line, c.to_string()));
                }
            }
        }
        at = at.min(chars.len());
        line += chars[from..at].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn after_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn after_string(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// For `r"`, `r#"`, `br"`: how many hashes there are, and where the text begins.
fn raw_string_start(chars: &[char], at: usize) -> Option<(usize, usize)> {
    let letters = if chars[at] == 'b' { 2 } else { 1 };
    if chars.get(at + letters - 1) != Some(&'r') {
        return None;
    }
    let hashes = chars[at + letters..]
        .iter()
        .take_while(|c| **c == '#')
        .count();
    let quote = at + letters + hashes;
    (chars.get(quote) == Some(&'"')).then_some((hashes, quote + 1))
}

fn after_raw_string(chars: &[char], hashes: usize, mut at: usize) -> usize {
    while at < chars.len() {
        let following = chars[at + 1..].iter().take(hashes);
        if chars[at] == '"' && following.filter(|c| **c == '#').count() == hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    at
}

/// Path relative to `src` and text of every Rust file.
fn sources(src: &Path) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(src).unwrap_or(&path);
                let text = fs::read_to_string(&path)?;
                found.push((name.to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    found.sort();
    Ok(found)
}

const HEADING: &str = "## Layers and allowed dependencies";
const FORBIDDEN_MODULES: [&str; 8] = [
    "utils", "util", "common", "helper", "helpers", "misc", "shared", "tools",
];
/// A path and the only layer that may name it.
const FORBIDDEN_PATHS: [(&str, &str); 6] = [
    ("parking_lot", "sync"),
    ("crossbeam", "sync"),
    ("once_cell", "sync"),
    ("std::sync", "sync"),
    ("std::thread", "sync"),
    ("mio", "remoting"),
];

fn check(path: &str, text: &str) -> Vec<String> {
    let design = "# x\n## Layers and allowed dependencies\n\n```text\nlib -> *\nsync -> -\nerror -> -\nclient -> sync, error\n\
                  producer -> client, error\nconsumer -> client, producer::send_kernel\nremoting -> sync\n```\n";
    violations(path, text, &parse_table(design).unwrap_or_default())
}

#[test]
fn an_edge_that_is_not_in_the_table_is_found() {
    let found = check("client/route.rs", "\nuse crate::producer::SendResult;\n");
    assert_eq!(
        found,
        ["client/route.rs:2: client may not use producer::SendResult"]
    );
}

#[test]
fn an_edge_inside_a_group_or_an_expression_is_found() {
    let group =
        "use crate::{\n    error::Error,\n    consumer::{self, listener::Listener as L},\n};\n";
    let found = check("client/route.rs", group);
    assert_eq!(
        found,
        [
            "client/route.rs:3: client may not use consumer::self",
            "client/route.rs:3: client may not use consumer::listener::Listener",
        ]
    );
    let expression = "fn f() -> u8 { crate::consumer::count::<u8>() }";
    assert_eq!(check("client/route.rs", expression).len(), 1);
}

#[test]
fn a_file_edge_allows_that_file_alone() {
    assert!(check("consumer/a.rs", "use crate::producer::send_kernel::send;").is_empty());
    assert_eq!(
        check("consumer/a.rs", "use crate::producer::send_kernel_extra;").len(),
        1
    );
    assert_eq!(check("consumer/a.rs", "use crate::producer::*;").len(), 1);
    assert_eq!(
        check(
            "consumer/a.rs",
            "use crate::producer::{send_kernel, validators};"
        )
        .len(),
        1
    );
}

#[test]
fn allowed_edges_own_layer_and_root_items_pass() {
    assert!(
        check(
            "client/a.rs",
            "use crate::{sync::Mutex, error::Error, client::b};"
        )
        .is_empty()
    );
    assert!(
        check(
            "lib.rs",
            "pub use crate::producer::P; pub use crate::consumer::C;"
        )
        .is_empty()
    );
}

#[test]
fn an_edge_cannot_hide_behind_the_crate_root_or_super() {
    assert_eq!(check("client/a.rs", "use crate::SendResult;").len(), 1);
    assert_eq!(check("client/mod.rs", "use super::producer::P;").len(), 1);
    assert_eq!(
        check("client/a.rs", "use super::super::producer::P;").len(),
        1
    );
    assert!(
        check(
            "client/a.rs",
            "use super::b::C; use super::super::error::Error;"
        )
        .is_empty()
    );
}

#[test]
fn comments_and_strings_name_nothing() {
    let text = "/// [`crate::consumer::C`]\n/* std::sync /* crate::producer */ */\nconst A: &str = \"std::thread\";\n\
                const B: &str = r#\"crate::producer::\"x\"#; const C: char = '\"'; const D: char = '\\''; fn f<'a>() {}\n";
    assert!(check("client/a.rs", text).is_empty());
    let after = format!("{text}use crate::producer::P;");
    assert_eq!(
        check("client/a.rs", &after),
        ["client/a.rs:5: client may not use producer::P"]
    );
}

#[test]
fn threads_locks_and_sockets_have_one_home_each() {
    for text in [
        "use std::sync::Arc;",
        "use std::{fmt, sync::atomic::AtomicU8};",
        "parking_lot::Mutex::new(0);",
        "use crossbeam::channel;",
        "once_cell::sync::Lazy",
        "use std::thread;",
        "use mio::Poll;",
    ] {
        assert_eq!(check("client/a.rs", text).len(), 1, "{text}");
    }
    assert!(
        check(
            "sync/real.rs",
            "use std::sync::Arc; use parking_lot::Mutex;"
        )
        .is_empty()
    );
    assert!(check("remoting/event_loop.rs", "use mio::Poll;").is_empty());
    assert_eq!(check("sync/real.rs", "use mio::Poll;").len(), 1);
    assert!(check("client/a.rs", "if std::thread::panicking() {}").is_empty());
}

#[test]
fn a_module_without_a_subject_and_an_unknown_layer_are_found() {
    assert_eq!(check("client/utils.rs", "").len(), 1);
    assert_eq!(check("client/misc/mod.rs", "").len(), 1);
    assert_eq!(
        check("extra/a.rs", ""),
        ["extra/a.rs: layer extra is not in the table of DESIGN.md"]
    );
}

#[test]
fn a_design_without_a_table_is_an_error() {
    assert!(parse_table("# Design\n").is_none());
    assert!(parse_table("## Layers and allowed dependencies\n```text\nno arrow\n```\n").is_none());
}

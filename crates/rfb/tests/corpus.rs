//! The fuzzers' corpus, replayed on a stable toolchain. What a fuzzer finds is added to the corpus and stays fixed.

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

use std::fs;
use std::path::PathBuf;

/// Runs a fuzz target on everything in its corpus.
fn replay(target: &str, body: fn(&[u8])) {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(corpus).expect("the corpus is there") {
        let path = entry.expect("readable").path();
        println!("{}", path.display());
        body(&fs::read(path).expect("readable"));
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn from_viewer() {
    replay("from_viewer", bodies::from_viewer);
}

#[test]
fn from_server() {
    replay("from_server", bodies::from_server);
}

#[test]
fn gate() {
    replay("gate", bodies::gate);
}

#![no_main]

// The program is no library: what is fuzzed of it is taken as it is. The corpus is replayed by its own tests.
#[path = "../../crates/handover/src/relay"]
#[allow(dead_code)]
mod relay {
    mod allow;
    mod answers;
    mod call;
    pub mod fuzzed;
    mod gate;
    mod memory;
    mod queue;
    mod records;
    mod scan;
    mod splitter;
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay::fuzzed::run(data));

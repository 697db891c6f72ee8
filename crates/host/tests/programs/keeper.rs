//! The keeper, for the tests of this crate.

fn main() -> std::process::ExitCode {
    handover_host::keeper::main(std::env::args_os().skip(1))
}

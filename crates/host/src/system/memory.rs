//! What this process holds of memory.

/// Gives memory that is free within this process back to the system; where the allocator has no such
/// call, it stays. For the end of work that takes much of it once.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number and touches only what the allocator knows to be free.
    unsafe {
        libc::malloc_trim(0);
    }
}

//! What this process holds of memory.

/// Lets all threads share few pools of memory, where the allocator would give each its own: what one
/// has freed is of use to the others. To be called before there are threads.
pub fn share() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes two numbers and sets a parameter of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives memory that is free within this process back to the system; where the allocator has no such
/// call, it stays. For the end of work that takes much of it once.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number and touches only what the allocator knows to be free.
    unsafe {
        libc::malloc_trim(0);
    }
}

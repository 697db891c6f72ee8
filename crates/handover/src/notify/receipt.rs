//! What the host is told: the numbers of the notices that are dealt with, one a line.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Where the numbers go.
pub struct Numbers(Mutex<Box<dyn Write + Send>>);

impl Numbers {
    /// They go to this.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(to)))
    }

    /// Says one. The pipe has room for far more than there are open notices, so nothing waits here.
    fn say(&self, number: u64) {
        let mut to = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A host that does not hear it has ended, and this process is about to.
        let _ = to.write_all(format!("{number}\n").as_bytes());
        let _ = to.flush();
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

/// Stands for a notice that the host has handed over. When it is dropped the notice is told by every way that is wanted,
/// or given up, and the host need not hand it over again.
#[derive(Debug)]
pub struct Receipt {
    number: u64,
    numbers: Arc<Numbers>,
}

impl Receipt {
    /// The one for this number, said to `numbers` in time.
    pub fn new(number: u64, numbers: Arc<Numbers>) -> Self {
        Self { number, numbers }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        // What a failing thread lets go of was not dealt with.
        if !thread::panicking() {
            self.numbers.say(self.number);
        }
    }
}

#[cfg(test)]
pub mod tests {
    use std::io;
    use std::panic::{self, AssertUnwindSafe};

    use super::*;

    /// Keeps what is said.
    #[derive(Clone, Default)]
    pub struct Told(Arc<Mutex<Vec<u8>>>);

    impl Told {
        /// A receipt that says this number here.
        pub fn receipt(&self, number: u64) -> Arc<Receipt> {
            let numbers = Arc::new(Numbers::new(self.clone()));
            Arc::new(Receipt::new(number, numbers))
        }

        /// What was said so far.
        pub fn said(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_last_clone_says_it() {
        let told = Told::default();
        let (one, other) = (told.receipt(7), told.receipt(8));
        let again = one.clone();
        drop(one);
        assert_eq!(told.said(), "");
        drop(other);
        drop(again);
        assert_eq!(told.said(), "8\n7\n");
    }

    #[test]
    fn what_failed_is_not_dealt_with() {
        let told = Told::default();
        let receipt = told.receipt(7);
        let failed = panic::catch_unwind(AssertUnwindSafe(|| {
            let _held = receipt;
            panic!("as it is meant to");
        }));
        assert!(failed.is_err());
        assert_eq!(told.said(), "");
    }

    #[test]
    fn a_host_that_is_gone_is_no_fault() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        drop(Receipt::new(1, Arc::new(Numbers::new(writer))));
    }
}

//! The thread pool of the package.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// The pool and the process that made it.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Returns a pool of `threads` threads; one per core, or `RAYON_NUM_THREADS`, if `threads` is `None`.
///
/// The pool of all cores is shared. Threads do not survive a fork, and a child that used its parent's
/// pool would wait forever, so that a child process makes a pool of its own.
pub(crate) fn pool(threads: Option<usize>) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
    if let Some(threads) = threads {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        return builder.build().map(Arc::new);
    }
    let mut shared = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let this = process::id();
    match &*shared {
        Some((process, pool)) if *process == this => Ok(pool.clone()),
        _ => {
            let pool = Arc::new(ThreadPoolBuilder::new().build()?);
            // The parent's pool is leaked: joining threads that do not exist would wait forever.
            std::mem::forget(shared.replace((this, pool.clone())));
            Ok(pool)
        }
    }
}

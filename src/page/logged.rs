//! A source that tells what it is asked for.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use super::{Hint, PageSource};

/// Tells a function of each call of another source, after it.
///
/// The function is called on whatever thread called the source, under no lock of the crate. It may use any pool;
/// if that is the pool that called, it must see to it that the recursion ends.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use sheaves::{Heap, Logged, Pool};
///
/// let lines = Arc::new(Mutex::new(Vec::new()));
/// let log = Arc::clone(&lines);
/// let source = Logged::new(Heap, move |call| log.lock().unwrap().push(call.to_string()));
/// let pool: Pool<u64> = Pool::builder("told").source(source).build()?;
/// drop(pool.alloc(1));
/// assert!(lines.lock().unwrap()[0].starts_with("65536 bytes at 0x"));
/// # Ok::<(), sheaves::BuildError>(())
/// ```
pub struct Logged<S, F> {
    source: S,
    log: F,
}

/// A call of a [`Logged`] source. `Display` makes a line of it.
///
/// ```
/// use sheaves::{Heap, Logged, Pool, SourceCall};
///
/// let source = Logged::new(Heap, |call| {
///     if let SourceCall::Alloc { layout, address: None, .. } = call {
///         eprintln!("no memory for {} bytes", layout.size());
///     }
/// });
/// let pool: Pool<u64> = Pool::builder("told").source(source).build()?;
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceCall {
    /// A block was allocated, or not.
    Alloc {
        /// What was asked for.
        layout: Layout,
        /// What for.
        hint: Hint,
        /// The address of the block; `None` if there was no memory.
        address: Option<usize>,
    },
    /// A block was freed.
    Free {
        /// Its address.
        address: usize,
        /// Its layout.
        layout: Layout,
    },
    /// The memory behind a range was to go back to the system.
    Discard {
        /// The address of the range.
        address: usize,
        /// Bytes of the range.
        bytes: usize,
        /// Whether it did.
        done: bool,
    },
    /// Memory kept for reuse was given back.
    Trim {
        /// Bytes given back.
        bytes: usize,
    },
    /// A block was to become larger or smaller.
    Remap {
        /// Its old address.
        address: usize,
        /// Its old layout.
        old: Layout,
        /// The layout asked for.
        new: Layout,
        /// Its new address; `None` if it stayed as it was.
        moved: Option<usize>,
    },
}

impl fmt::Display for SourceCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alloc {
                layout,
                address: Some(address),
                ..
            } => write!(f, "{} bytes at {address:#x}", layout.size()),
            Self::Alloc { layout, .. } => write!(f, "no memory for {} bytes", layout.size()),
            Self::Free { address, layout } => {
                write!(f, "{} bytes freed at {address:#x}", layout.size())
            }
            Self::Discard {
                address,
                bytes,
                done,
            } => {
                let not = if done { "" } else { "not " };
                write!(f, "{bytes} bytes {not}discarded at {address:#x}")
            }
            Self::Trim { bytes } => write!(f, "{bytes} bytes trimmed"),
            Self::Remap {
                address,
                old,
                new,
                moved: Some(moved),
            } => write!(
                f,
                "{} bytes at {address:#x} are {} bytes at {moved:#x}",
                old.size(),
                new.size()
            ),
            Self::Remap {
                address, old, new, ..
            } => write!(
                f,
                "{} bytes at {address:#x} cannot become {}",
                old.size(),
                new.size()
            ),
        }
    }
}

impl<S: PageSource, F: Fn(&SourceCall) + Send + Sync + 'static> Logged<S, F> {
    /// Tells `log` of each call of `source`.
    pub fn new(source: S, log: F) -> Self {
        Self { source, log }
    }

    /// The source beneath.
    pub fn source(&self) -> &S {
        &self.source
    }
}

// SAFETY: every block is one of the source beneath, which is kept, and all calls go to it unchanged. If the log
// panics in an allocation or a remap, the block is given back or kept first, see there.
unsafe impl<S: PageSource, F: Fn(&SourceCall) + Send + Sync + 'static> PageSource for Logged<S, F> {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc_pages_hinted(layout, Hint::NONE)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { self.source.free_pages(pages, layout) };
        let address = pages.addr().get();
        (self.log)(&SourceCall::Free { address, layout });
    }

    fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
        // If the log panics the caller gets no block: this one would be lost.
        let block = Unlogged {
            source: &self.source,
            layout,
            pages: self.source.alloc_pages_hinted(layout, hint),
        };
        (self.log)(&SourceCall::Alloc {
            layout,
            hint,
            address: block.pages.map(|pages| pages.addr().get()),
        });
        core::mem::ManuallyDrop::new(block).pages
    }

    unsafe fn discard(&self, pages: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: passed on.
        let done = unsafe { self.source.discard(pages, layout) };
        (self.log)(&SourceCall::Discard {
            address: pages.addr().get(),
            bytes: layout.size(),
            done,
        });
        done
    }

    fn trim(&self) -> usize {
        let bytes = self.source.trim();
        (self.log)(&SourceCall::Trim { bytes });
        bytes
    }

    unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: passed on.
        let moved = unsafe { self.source.remap(pages, old, new) };
        let call = SourceCall::Remap {
            address: pages.addr().get(),
            old,
            new,
            moved: moved.map(|moved| moved.addr().get()),
        };
        // The old block is gone whatever happens now, so a panic must not reach the caller.
        let told = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| (self.log)(&call)));
        if moved.is_none() {
            told.unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        }
        moved
    }
}

/// A block that the log does not know of yet; goes back if the log panics.
struct Unlogged<'a, S: PageSource> {
    source: &'a S,
    layout: Layout,
    pages: Option<NonNull<u8>>,
}

impl<S: PageSource> Drop for Unlogged<'_, S> {
    fn drop(&mut self) {
        if let Some(pages) = self.pages {
            // SAFETY: the block was allocated with this layout, and nobody has seen it.
            unsafe { self.source.free_pages(pages, self.layout) };
        }
    }
}

impl<S: fmt::Debug, F> fmt::Debug for Logged<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

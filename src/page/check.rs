//! The contract of a page source, as a test that a user's own can be run through.

#[cfg(test)]
mod tests;

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use super::{Hint, PageSource};
use crate::base::layout::PAGE_SIZE;
use crate::sync::{Arc, Lock};

/// Steps that each thread makes.
const STEPS: usize = 400;

/// Threads that use the source at once.
const THREADS: u64 = 4;

/// Blocks that a thread has at most; 40 pages each at most, so that all together are some hundred MiB.
const BLOCKS: usize = 12;

/// Every so many bytes a word is written and looked at again: in each page of the hardware.
const STRIDE: usize = 4096;

/// What [`check`] found.
///
/// ```
/// let fault: Result<(), sheaves::page::SourceFault> = sheaves::page::check(&sheaves::Heap);
/// assert_eq!(fault, Ok(()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFault(Arc<str>);

impl fmt::Display for SourceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SourceFault {}

macro_rules! fault {
    ($($text:tt)*) => { Err(SourceFault(alloc::format!($($text)*).into())) };
}

/// Runs a page source through its contract: some thousand calls of all its methods from several threads, in an order
/// that is the same each time, while what the blocks hold is watched.
///
/// It looks at size, alignment and overlap of blocks, at whether they keep their contents while others are
/// allocated, freed, discarded, remapped and trimmed, and at whether one thread may free what another allocated.
/// It gives all blocks back. A source that is short of memory passes if it gives at least one page; it
/// needs room for some blocks of up to 40 pages to be put to the test.
///
/// What it cannot see is told by [`PageSource`]'s safety section. A source that hands out memory that is not mapped ends
/// the process; a panic of a method reaches the caller, and leaks.
///
/// # Errors
///
/// The first violation.
///
/// ```
/// use sheaves::{Heap, Metered, page};
///
/// let source = Metered::new(Heap).with_limit(16 << 20);
/// page::check(&source)?;
/// assert_eq!(source.bytes(), 0);
/// # Ok::<(), page::SourceFault>(())
/// ```
pub fn check<S: PageSource + ?Sized>(source: &S) -> Result<(), SourceFault> {
    let one = layout(1, 1);
    let Some(page) = source.alloc_pages(one) else {
        return fault!("the source gives not even one page of {PAGE_SIZE} bytes");
    };
    // SAFETY: a block of this source with its layout, which nobody uses.
    unsafe { source.free_pages(page, one) };
    let passed_on = Lock::new(Vec::new());
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|thread| {
                let passed_on = &passed_on;
                scope.spawn(move || Walk::new(thread, source).run(passed_on))
            })
            .collect();
        let results = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        });
        results.collect::<Vec<_>>()
    });
    for block in passed_on.lock().drain(..) {
        block.free(source)?;
    }
    results.into_iter().collect()
}

fn layout(pages: usize, align: usize) -> Layout {
    Layout::from_size_align(pages * PAGE_SIZE, align * PAGE_SIZE).expect("a few pages are a layout")
}

/// A block of the source, with a word that it is marked with.
#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    tag: u64,
}

// SAFETY: a block belongs to whoever holds it; its memory may be used from any thread.
unsafe impl Send for Block {}

impl Block {
    /// Looks at a new block and marks it.
    fn new(start: NonNull<u8>, layout: Layout, tag: u64) -> Result<Self, SourceFault> {
        if start.addr().get() % layout.align() != 0 {
            return fault!("a block at {start:p} is not aligned as {layout:?} says");
        }
        let mut block = Self { start, layout, tag };
        block.mark(0, layout.size());
        Ok(block)
    }

    /// Writes its mark to the bytes from `from` to `to`.
    fn mark(&mut self, from: usize, to: usize) {
        for at in (from..to).step_by(STRIDE) {
            // SAFETY: within the block, which is this one's, and aligned, as `STRIDE` is a multiple of 8.
            let word = unsafe { self.start.add(at) }.cast::<u64>();
            // SAFETY: as above.
            unsafe { word.write(self.tag ^ at as u64) };
        }
    }

    /// Whether the mark is still there, in the bytes up to `to`.
    fn look(&self, to: usize, after: &str) -> Result<(), SourceFault> {
        for at in (0..to).step_by(STRIDE) {
            // SAFETY: within the block, which is this one's; aligned.
            let word = unsafe { self.start.add(at) }.cast::<u64>();
            // SAFETY: as above, and initialised by `mark`.
            let found = unsafe { word.read() };
            if found != self.tag ^ at as u64 {
                let (start, layout) = (self.start, self.layout);
                return fault!(
                    "byte {at} of a block of {layout:?} at {start:p} has changed {after}: somebody else uses it"
                );
            }
        }
        Ok(())
    }

    fn free(self, source: &(impl PageSource + ?Sized)) -> Result<(), SourceFault> {
        self.look(self.layout.size(), "before it was freed")?;
        // SAFETY: a block of this source with its layout, which ends here.
        unsafe { source.free_pages(self.start, self.layout) };
        Ok(())
    }
}

/// What one thread does.
struct Walk<'a, S: ?Sized> {
    source: &'a S,
    thread: u64,
    random: u64,
    blocks: Vec<Block>,
}

impl<'a, S: PageSource + ?Sized> Walk<'a, S> {
    fn new(thread: u64, source: &'a S) -> Self {
        Self {
            source,
            thread,
            random: thread.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            blocks: Vec::new(),
        }
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let bits = (self.random >> 11) as usize;
        bits % n
    }

    fn run(mut self, passed_on: &Lock<Vec<Block>>) -> Result<(), SourceFault> {
        for step in 0..STEPS {
            if let Err(fault) = self.step(step, passed_on) {
                // What else is wrong may follow from it.
                let _ = self.end();
                return Err(fault);
            }
        }
        self.end()
    }

    /// Frees what is left.
    fn end(&mut self) -> Result<(), SourceFault> {
        while let Some(block) = self.blocks.pop() {
            block.free(self.source)?;
        }
        Ok(())
    }

    fn step(&mut self, step: usize, passed_on: &Lock<Vec<Block>>) -> Result<(), SourceFault> {
        let at = self.below(self.blocks.len().max(1));
        match self.below(10) {
            _ if self.blocks.is_empty() => self.allocate(step)?,
            0..4 if self.blocks.len() < BLOCKS => self.allocate(step)?,
            4 | 5 => self.remap(at)?,
            6 => self.discard(at)?,
            7 => {
                // Another thread may free it, or the one that began.
                let block = self.blocks.swap_remove(at);
                passed_on.lock().push(block);
                let other = passed_on.lock().swap_remove(0);
                other.free(self.source)?;
            }
            8 if step % 16 == 0 => {
                self.source.trim();
            }
            _ => self.blocks.swap_remove(at).free(self.source)?,
        }
        self.blocks
            .iter()
            .try_for_each(|block| block.look(block.layout.size(), "while it was out"))
    }

    fn random_layout(&mut self) -> Layout {
        let pages = match self.below(3) {
            0 => 1,
            1 => 1 << self.below(6),
            _ => 1 + self.below(40),
        };
        layout(pages, [1, 1, 1, 2, 32][self.below(5)])
    }

    fn allocate(&mut self, step: usize) -> Result<(), SourceFault> {
        let layout = self.random_layout();
        let hint = [Hint::NONE, Hint::NONE.huge(), Hint::NONE.populate()][self.below(3)];
        let Some(start) = self.source.alloc_pages_hinted(layout, hint) else {
            return Ok(());
        };
        let overlap = self.blocks.iter().find(|other| {
            let (from, to) = (start.addr().get(), other.start.addr().get());
            from < to + other.layout.size() && to < from + layout.size()
        });
        if let Some(other) = overlap {
            let (other, of) = (other.start, other.layout);
            return fault!(
                "a block of {layout:?} at {start:p} overlaps one of {of:?} at {other:p}"
            );
        }
        let tag = self.thread << 56 | (step as u64) << 32;
        self.blocks.push(Block::new(start, layout, tag)?);
        Ok(())
    }

    fn discard(&mut self, at: usize) -> Result<(), SourceFault> {
        let pages = self.blocks[at].layout.size() / PAGE_SIZE;
        let first = self.below(pages);
        let count = 1 + self.below(pages - first);
        let block = &mut self.blocks[at];
        // SAFETY: the pages lie within the block.
        let start = unsafe { block.start.add(first * PAGE_SIZE) };
        // SAFETY: they do, and nothing uses them during the call.
        unsafe { self.source.discard(start, layout(count, 1)) };
        // Their contents are undefined, and the pages still the block's.
        block.mark(first * PAGE_SIZE, (first + count) * PAGE_SIZE);
        Ok(())
    }

    fn remap(&mut self, at: usize) -> Result<(), SourceFault> {
        let new = self.random_layout();
        let block = self.blocks.swap_remove(at);
        let old = block.layout;
        // SAFETY: a block of this source with its layout, which nobody uses during the call.
        let moved = unsafe { self.source.remap(block.start, old, new) };
        let block = match moved {
            None => {
                let unchanged = block.look(old.size(), "though it was not remapped");
                self.blocks.push(block);
                return unchanged;
            }
            Some(start) => Block {
                start,
                layout: new,
                tag: block.tag,
            },
        };
        block.look(old.size().min(new.size()), "as it was remapped")?;
        self.blocks.push(Block::new(block.start, new, block.tag)?);
        Ok(())
    }
}

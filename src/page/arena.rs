//! Pages from a bump arena.

use core::alloc::Layout;
use core::ptr::NonNull;

use bumpalo::Bump;

use super::PageSource;
use super::free_list::FreeList;
use crate::base::layout::PAGE_SIZE;
use crate::sync::Lock;

/// Bytes taken from the arena at once, if no more are asked for: sixteen pages, so that a pool that grows page by
/// page does not pay for the alignment of each.
const STEP: usize = 16 * PAGE_SIZE;

/// Pages bumped from the global allocator, in chunks that double, and all given back at once.
///
/// For pools that live as long as a request or a phase: slabs cost a few instructions, freed ones are recycled
/// within the pool, and when the pool and its last object are gone all memory goes back in a few calls. Between
/// those, nothing goes back: `shrink` gives slabs to the arena and not to the system.
///
/// A clone of an `Arc<Arena>` may serve several pools of one phase.
///
/// # Real time
///
/// Takes a lock, and a step for each free run of pages. Where the arena is used up the global allocator is asked
/// for a chunk, twice as large as the last.
///
/// ```
/// use sheaves::{Arena, Pool};
///
/// let pool: Pool<[u64; 30]> = Pool::builder("request").source(Arena::new()).build()?;
/// let boxes: Vec<_> = (0..1000).map(|i| pool.alloc([i; 30])).collect();
/// drop((boxes, pool)); // all of the arena goes
/// # Ok::<(), sheaves::BuildError>(())
/// ```
pub struct Arena(Lock<State>);

struct State {
    free: FreeList,
    bump: Bump,
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Self {
        Self(Lock::new(State {
            free: FreeList::new(),
            bump: Bump::new(),
        }))
    }

    /// Bytes that the arena has of the global allocator.
    pub fn bytes(&self) -> usize {
        self.0.lock().bump.allocated_bytes()
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Bumps more pages than are asked for, if they can be had, and keeps the rest.
    fn bump(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let wide = Layout::from_size_align(layout.size().max(STEP), layout.align()).ok()?;
        for layout_tried in [wide, layout] {
            let Ok(start) = self.bump.try_alloc_layout(layout_tried) else {
                continue;
            };
            let rest = layout_tried.size() - layout.size();
            if rest > 0 {
                // SAFETY: the rest lies behind the block in the same allocation of the arena.
                let tail = unsafe { start.add(layout.size()) };
                // SAFETY: whole pages, bumped just now and nobody else's. Runs next to each other are of one
                // chunk or of none: a chunk has a footer, so pages of two never touch.
                unsafe { self.free.put(tail, rest) };
            }
            return Some(start);
        }
        None
    }
}

// SAFETY: blocks are bumped, so they belong to nobody else and stay where they are until the arena is dropped,
// wherever it is moved meanwhile. Freed ones are on the list of free runs until they are blocks again.
unsafe impl PageSource for Arena {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut state = self.0.lock();
        state.free.take(layout).or_else(|| state.bump(layout))
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up a block, of whole pages. That pages of two chunks never touch is told above.
        unsafe { self.0.lock().free.put(pages, layout.size()) };
    }
}

impl core::fmt::Debug for Arena {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Arena")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

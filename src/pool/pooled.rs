//! Types with a pool of their own.

use super::{Pool, PoolBox, PrefilledSheaf};
use crate::base::error::AllocError;

/// A type that has one pool for the whole process.
///
/// `#[derive(Pooled)]` implements it and builds the pool when it is first used.
///
/// # Safety
///
/// `pool` returns the same pool every time.
///
/// # Examples
///
/// ```
/// use sheaves::{PoolBox, Pooled};
///
/// #[derive(Pooled)]
/// #[pool(name = "io_kiocb", sheaf_capacity = 256)]
/// struct Kiocb {
///     fd: i32,
///     user_data: u64,
/// }
///
/// let request: PoolBox<Kiocb> = Kiocb { fd: 3, user_data: 7 }.pooled();
/// assert_eq!((request.fd, request.user_data), (3, 7));
/// assert_eq!(Kiocb::pool().name(), "io_kiocb");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no pool of its own",
    label = "no pool for this type",
    note = "add `#[derive(sheaves::Pooled)]` to it, or allocate from a `Pool<{Self}>`"
)]
pub unsafe trait Pooled: Sized + 'static {
    /// The type's pool.
    ///
    /// # Panics
    ///
    /// The first call, if the pool cannot be built.
    fn pool() -> &'static Pool<Self>;

    /// Moves the value into the type's pool.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    #[inline]
    fn pooled(self) -> PoolBox<Self> {
        Self::pool().alloc(self)
    }

    /// Borrows a sheaf with at least `n` slots from the type's pool.
    ///
    /// # Errors
    ///
    /// As [`Pool::prefill`].
    fn prefill(n: usize) -> Result<PrefilledSheaf<Self>, AllocError> {
        Self::pool().prefill(n)
    }
}

//! The derive macro of the `sheaves` object pool.
//!
//! Use it through `sheaves`, which re-exports it: the generated code calls that crate, and the two versions
//! are pinned to each other.
//!
//! A derive is a pipeline. `attr` cuts the attributes into entries, `ast` holds them beside the type,
//! `valid` judges them with the readers of `value` (and the spelling help of `word`), `expand` writes the
//! implementation; after an error `fallback` writes the messages and a stub.

#![forbid(unsafe_code)]

mod ast;
mod attr;
mod expand;
mod fallback;
#[cfg(test)]
mod tests;
mod valid;
mod value;
mod word;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Gives a type a pool of its own: implements the trait `Pooled` for a struct or an enum.
///
/// The pool is a `static`. It is built when it is first used, and it lives as long as the process.
///
/// ```text
/// use sheaves::{PoolBox, Pooled};
///
/// #[derive(Pooled)]
/// #[pool(name = "io_kiocb", order = large, sheaf_capacity = 256)]
/// struct Kiocb {
///     fd: i32,
///     user_data: u64,
/// }
///
/// let request: PoolBox<Kiocb> = Kiocb { fd: 3, user_data: 7 }.pooled();
/// let spare = Kiocb::prefill(8)?;
/// println!("{:?}", Kiocb::pool().stats());
/// ```
///
/// # Keys
///
/// All are optional. They may be spread over several `#[pool(...)]` attributes on the type, in any order;
/// each may be given once.
///
/// | key | value | left out |
/// |---|---|---|
/// | `name = "io_kiocb"` | 1 to 64 bytes without white space or control characters | the type's name in snake case |
/// | `order = large` | page order of a slab: `auto`, `large` (2 MiB), `max`, or 0 to 9 for `64 KiB << order` | `auto` |
/// | `align = cache_line` | alignment of a slot: `natural`, `cache_line`, or a power of two up to 32768 bytes | `natural` |
/// | `sheaf_capacity = 256` | objects in a sheaf, 0 to 32768; 0 for no sheaves | by the object's size |
/// | `barn = (10, 10)` | full and empty sheaves kept in common, 0 to 64 each | `(10, 10)` |
/// | `min_partial = 5` | slabs up to which an emptied one is kept, 0 to 65536 | by the object's size |
/// | `limit = 1000` | objects live or prefilled at once, 1 or more | no limit |
/// | `reserve = 10` | objects whose memory is had at once and kept, at most `limit` | 0 |
/// | `debug = "FP"` | letters of `DebugFlags`: F, Z, P, U, T, A | none |
/// | `zero_on_free` | a flag: freed slots are zeroed | off |
/// | `strict_layout` | a flag: the allocator traits serve one object at a time only | off |
/// | `crate = path::to::sheaves` | where this crate is found, if not at `::sheaves` | `::sheaves` |
///
/// Numbers, words and the path are written without quotes; a number may have the suffix of an integer type.
/// Each key but `crate` is the option of the same name in `Builder`, which says more about it. Page sources
/// and other values that are no literals need the builder.
///
/// # Errors
///
/// At compile time, each at its place and all at once: an unknown key, a key given twice, a value of the
/// wrong kind or out of its bounds, a type too large for the order or too strictly aligned for a slot, a
/// `#[pool(...)]` on a field or variant.
///
/// Generic types are refused, since a `static` has one type: wrap each concrete type in a struct. So are
/// unions, which can be wrapped in the same way, and unsized types.
///
/// # Panics
///
/// The first use of the pool panics with the text of the `BuildError` if the pool cannot be built after
/// all, as for want of memory for its `reserve`.
///
/// # Unsafe code
///
/// The trait is an `unsafe` one, so the derive writes an `unsafe impl`. The promise is kept by
/// construction, and the compiler counts the keyword as the macro's: a crate under
/// `#![forbid(unsafe_code)]` may use this derive.
#[proc_macro_derive(Pooled, attributes(pool))]
pub fn pooled(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input as DeriveInput)).into()
}

fn derive(node: &DeriveInput) -> proc_macro2::TokenStream {
    let mut errors = fallback::Errors::default();
    let input = ast::Input::from_syn(node, &mut errors);
    let options = valid::validate(&input, &mut errors);
    match errors.into_error() {
        None => expand::expand(input.ident, &options),
        Some(error) => fallback::expand(&input, &options.krate, &error),
    }
}

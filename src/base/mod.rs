//! What every layer knows: errors, configuration, and the arithmetic of slots and orders.
//!
//! Nothing here touches memory or shares state, but for the intrusive [`list`], whose links live in the
//! memory of what is linked.

mod build_error;
pub(crate) mod choice;
#[cfg_attr(
    not(any_allocator),
    expect(dead_code, reason = "only the allocator traits ask for such layouts")
)]
pub(crate) mod class;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod flags;
pub(crate) mod layout;
pub(crate) mod list;
pub(crate) mod name;
pub(crate) mod order;
pub(crate) mod topology;

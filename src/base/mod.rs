//! What every layer knows: errors, configuration, and the arithmetic of slots and orders.
//!
//! Nothing here touches memory or shares state, but for the intrusive [`list`], whose links live in the
//! memory of what is linked.

pub(crate) mod choice;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod flags;
pub(crate) mod layout;
pub(crate) mod list;
pub(crate) mod order;

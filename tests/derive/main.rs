//! What `#[derive(Pooled)]` makes of a type: the options reach the pool, and the code fits in wherever the
//! type stands.
#![forbid(unsafe_code)]
#![cfg(feature = "derive")]

mod hygiene;
mod options;

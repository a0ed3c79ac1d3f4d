//! Debugged pools: what is done wrong is told once, with the right bytes, and the pool goes on.
//!
//! The faults themselves are writes that a program must not make; each goes to memory of the pool's own slab, so
//! that it harms nothing but the patterns that are to tell it.

mod environment;
mod faults;
mod kernel;
mod leaks;
mod support;
mod tracks;

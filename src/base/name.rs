//! Names of pools.
#![forbid(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ops::Deref;

use crate::sync::Shared;

/// A pool's name, shared by all that tell of it.
#[derive(Clone)]
pub(crate) struct Name(Shared<Box<str>>);

impl Name {
    /// Ends the process where there is no memory.
    pub(crate) fn new(name: &str) -> Self {
        Self::try_joined([name, ""])
            .unwrap_or_else(|| alloc::alloc::handle_alloc_error(Layout::for_value(name)))
    }

    /// Two parts in one; `None` if there is no memory.
    pub(crate) fn try_joined(parts: [&str; 2]) -> Option<Self> {
        Shared::try_new(joined(parts)?.into_boxed_str()).map(Self)
    }

    /// A copy; empty if there is no memory.
    pub(crate) fn copied(&self) -> String {
        joined([self, ""]).unwrap_or_default()
    }
}

fn joined(parts: [&str; 2]) -> Option<String> {
    let mut text = String::new();
    // Exactly: to shorten it could be refused.
    text.try_reserve_exact(parts[0].len() + parts[1].len())
        .ok()?;
    text.extend(parts);
    Some(text)
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

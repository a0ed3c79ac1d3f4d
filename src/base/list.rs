//! A doubly linked list through links that its elements carry.
//!
//! A list owns its elements. It needs no memory of its own for them, so putting one in cannot fail, and one
//! can be taken out of the middle in constant time. What an element is, and where its links lie, is told by
//! [`Linked`]; whoever implements it answers for the pointers, and in return the list's own operations are
//! safe but for [`List::remove`].

use core::marker::PhantomData;
use core::ptr::NonNull;

/// The links of one element.
#[derive(Debug)]
pub(crate) struct Links<N> {
    prev: Option<NonNull<N>>,
    next: Option<NonNull<N>>,
}

impl<N> Links<N> {
    pub(crate) const fn new() -> Self {
        Self {
            prev: None,
            next: None,
        }
    }
}

/// An owned handle of something that can be in a [`List`].
///
/// # Safety
///
/// 1. `into_node` gives up the handle for a pointer to a node that stays valid, and is neither moved nor
///    accessed by anybody else but through the list, until the handle is made again by `from_node`.
/// 2. `links` returns a pointer to the links of that node, the same each time, valid for reads and writes.
pub(crate) unsafe trait Linked: Sized {
    /// What the pointers of the list point to.
    type Node;

    fn into_node(self) -> NonNull<Self::Node>;

    /// # Safety
    ///
    /// `node` came from `into_node` and is in no list; the handle is made once for each time it was given up.
    unsafe fn from_node(node: NonNull<Self::Node>) -> Self;

    /// # Safety
    ///
    /// `node` came from `into_node` and has not become a handle again.
    unsafe fn links(node: NonNull<Self::Node>) -> NonNull<Links<Self::Node>>;
}

/// A list that owns its elements.
///
/// # Invariants
///
/// 1. Every node reachable from `head` came from `into_node`, is in this list only, and is not a handle.
/// 2. The links of those nodes form one doubly linked chain from `head`, `len` nodes long.
pub(crate) struct List<H: Linked> {
    head: Option<NonNull<H::Node>>,
    len: usize,
    _owns: PhantomData<H>,
}

impl<H: Linked> core::fmt::Debug for List<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("List")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

// SAFETY: a list owns its elements (invariant 1), so sending it sends the handles.
unsafe impl<H: Linked + Send> Send for List<H> {}

impl<H: Linked> List<H> {
    pub(crate) const fn new() -> Self {
        Self {
            head: None,
            len: 0,
            _owns: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first node, which stays in the list.
    pub(crate) fn first(&self) -> Option<NonNull<H::Node>> {
        self.head
    }

    /// Every node, which all stay in the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = NonNull<H::Node>> {
        core::iter::successors(self.head, |node| self.read(*node).next)
    }

    pub(crate) fn push_front(&mut self, element: H) {
        let node = element.into_node();
        self.write(
            node,
            Links {
                prev: None,
                next: self.head,
            },
        );
        if let Some(head) = self.head {
            self.write_prev(head, Some(node));
        }
        self.head = Some(node);
        self.len += 1;
    }

    pub(crate) fn pop_front(&mut self) -> Option<H> {
        let node = self.head?;
        // SAFETY: the head is in this list (invariant 1).
        Some(unsafe { self.remove(node) })
    }

    /// Takes a node out of the middle.
    ///
    /// # Safety
    ///
    /// `node` is in this list.
    pub(crate) unsafe fn remove(&mut self, node: NonNull<H::Node>) -> H {
        let Links { prev, next } = self.read(node);
        match prev {
            Some(prev) => self.write_next(prev, next),
            None => self.head = next,
        }
        if let Some(next) = next {
            self.write_prev(next, prev);
        }
        self.len -= 1;
        // SAFETY: the node was in this list, so it came from `into_node` (invariant 1), and it was just
        // unlinked, so it is in no list and becomes a handle once.
        unsafe { H::from_node(node) }
    }

    fn read(&self, node: NonNull<H::Node>) -> Links<H::Node> {
        // SAFETY: every node passed here is in this list and so not a handle (invariant 1).
        let links = unsafe { H::links(node) };
        // SAFETY: the links are valid for reads by the contract of `Linked`, and this list is borrowed.
        unsafe { links.read() }
    }

    fn write(&mut self, node: NonNull<H::Node>, new: Links<H::Node>) {
        // SAFETY: the node is in this list, or was just given up to it by `into_node`.
        let links = unsafe { H::links(node) };
        // SAFETY: the links are valid for writes by the contract of `Linked`, and this list is borrowed
        // exclusively.
        unsafe { links.write(new) }
    }

    fn write_next(&mut self, node: NonNull<H::Node>, next: Option<NonNull<H::Node>>) {
        let Links { prev, .. } = self.read(node);
        self.write(node, Links { prev, next });
    }

    fn write_prev(&mut self, node: NonNull<H::Node>, prev: Option<NonNull<H::Node>>) {
        let Links { next, .. } = self.read(node);
        self.write(node, Links { prev, next });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item {
        links: Links<Self>,
        value: u32,
    }

    // SAFETY: a box gives up its allocation, which stays where it is until the box is made again.
    unsafe impl Linked for Box<Item> {
        type Node = Item;

        fn into_node(self) -> NonNull<Item> {
            NonNull::from(Box::leak(self))
        }

        unsafe fn from_node(node: NonNull<Item>) -> Self {
            // SAFETY: the node came from `into_node`, once.
            unsafe { Self::from_raw(node.as_ptr()) }
        }

        unsafe fn links(node: NonNull<Item>) -> NonNull<Links<Item>> {
            // SAFETY: the node is valid, so its field is within the same allocation.
            unsafe { node.byte_add(core::mem::offset_of!(Item, links)) }.cast()
        }
    }

    fn item(value: u32) -> Box<Item> {
        Box::new(Item {
            links: Links::new(),
            value,
        })
    }

    #[test]
    fn behaves_like_a_deque_with_removal() {
        let mut list = List::new();
        let mut model = alloc::collections::VecDeque::new();
        let mut nodes = std::collections::HashMap::new();
        let mut seed = 1_u32;
        for value in 0..4000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match seed >> 29 {
                0..=4 => {
                    list.push_front(item(value));
                    nodes.insert(value, list.first().expect("just pushed"));
                    model.push_front(value);
                }
                5 => assert_eq!(list.pop_front().map(|i| i.value), model.pop_front()),
                _ if !model.is_empty() => {
                    let at = seed as usize % model.len();
                    let value = model.remove(at).expect("in range");
                    // SAFETY: the model says that the node is in the list.
                    let gone = unsafe { list.remove(nodes[&value]) };
                    assert_eq!(gone.value, value);
                }
                _ => {}
            }
            assert_eq!(list.len(), model.len());
        }
        while let Some(gone) = list.pop_front() {
            assert_eq!(Some(gone.value), model.pop_front());
        }
        assert!(model.is_empty());
    }
}

//! The request: what a kernel keeps for one I/O operation while it is in flight.
//!
//! Its size, 240 bytes, is that of the kernel's own io_uring request on 64-bit machines, give or
//! take a configuration. A NOP needs few of its fields. As a kernel does, [`Kiocb::nop`] sets those
//! and the ones a later step would look at, and leaves the room for buffers and for the command's
//! own data unwritten: there is nothing to put there.

#![forbid(unsafe_code)]

use core::mem::MaybeUninit;

/// The operation code of a request that does nothing, as io_uring numbers it.
const OP_NOP: u8 = 0;

/// What `fd` says when a request is about no file.
const NO_FD: i32 = -1;

/// Where one buffer of a request lies.
#[derive(Clone, Copy)]
#[repr(C)]
struct Buffer {
    address: u64,
    length: u64,
}

/// One I/O request of exactly 240 bytes.
///
/// `repr(C)` keeps the order of the fields, so that `sequence` is the first word and `check` the
/// last.
#[repr(C)]
pub(crate) struct Kiocb {
    /// Which request of the round this is. First word.
    sequence: u64,
    op: u8,
    sqe_flags: u8,
    priority: u16,
    fd: i32,
    /// What the completion must carry to belong to this request.
    user_data: u64,
    flags: u64,
    /// What the completion said; set when it came.
    result: i32,
    cqe_flags: u32,
    offset: u64,
    length: u32,
    buffer_index: u16,
    buffer_group: u16,
    personality: u16,
    references: u16,
    poll_references: u32,
    /// The next request of a chain, by its place in the table.
    link: Option<core::num::NonZeroU32>,
    buffer_count: u32,
    /// Three timestamps and a deadline in nanoseconds; 0 means "not taken", as reading the clock
    /// costs more than a NOP.
    submitted_at: u64,
    issued_at: u64,
    completed_at: u64,
    deadline: u64,
    buffers: MaybeUninit<[Buffer; 4]>,
    command: MaybeUninit<[u64; 8]>,
    /// The complement of `sequence`. Last word.
    check: u64,
}

const _: () = assert!(
    size_of::<Kiocb>() == 240,
    "the request must be as large as what it stands for"
);
const _: () = assert!(
    core::mem::offset_of!(Kiocb, sequence) == 0,
    "the sequence number is the first word"
);
const _: () = assert!(
    core::mem::offset_of!(Kiocb, check) == 232,
    "its complement is the last word"
);

impl Kiocb {
    /// A NOP, the `sequence`th of its round, whose completion will carry `user_data`.
    #[inline]
    pub(crate) const fn nop(sequence: u64, user_data: u64) -> Self {
        Self {
            sequence,
            op: OP_NOP,
            sqe_flags: 0,
            priority: 0,
            fd: NO_FD,
            user_data,
            flags: 0,
            result: 0,
            cqe_flags: 0,
            offset: 0,
            length: 0,
            buffer_index: 0,
            buffer_group: 0,
            personality: 0,
            references: 1,
            poll_references: 0,
            link: None,
            buffer_count: 0,
            submitted_at: 0,
            issued_at: 0,
            completed_at: 0,
            deadline: 0,
            buffers: MaybeUninit::uninit(),
            command: MaybeUninit::uninit(),
            check: !sequence,
        }
    }

    /// Notes what the completion said, and whether this is the request it was for: the sequence
    /// number in the first word, its complement in the last, and the user data are all as they were
    /// at submission.
    #[inline]
    pub(crate) const fn complete(&mut self, sequence: u64, user_data: u64, result: i32) -> bool {
        self.result = result;
        self.sequence == sequence && self.check == !sequence && self.user_data == user_data
    }
}

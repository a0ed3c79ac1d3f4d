//! What the derive accepts. Every rejection starts here; what is left comes out as [`Options`].
//!
//! The bounds are those of the builder. They are told here too, so that a wrong value is an error at its
//! place in the source, not a panic when the pool is first used.

#![forbid(unsafe_code)]

use syn::ext::IdentExt;
use syn::{Data, Error, Ident, Path, Type, parse_quote};

use crate::ast::Input;
use crate::attr::{Entry, Value};
use crate::fallback::Errors;
use crate::value::{self, Align, At, Key, MAX_NAME, Order, read};
use crate::word::{nearest, snake_case};

/// What the attributes say. `None` leaves the builder's default.
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) order: Option<At<Order>>,
    pub(crate) align: Option<At<Align>>,
    pub(crate) sheaf_capacity: Option<At<usize>>,
    pub(crate) barn: Option<At<(usize, usize)>>,
    pub(crate) min_partial: Option<At<usize>>,
    pub(crate) limit: Option<At<usize>>,
    pub(crate) reserve: Option<At<usize>>,
    pub(crate) debug: Option<At<String>>,
    pub(crate) zero_on_free: bool,
    pub(crate) strict_layout: bool,
    pub(crate) krate: Path,
}

/// In the order of the documentation.
const KEYS: [&str; 12] = [
    "name",
    "order",
    "align",
    "sheaf_capacity",
    "barn",
    "min_partial",
    "limit",
    "reserve",
    "debug",
    "zero_on_free",
    "strict_layout",
    "crate",
];

const NAME: Key = key(
    "name",
    "a string literal of 1 to 64 bytes without white space or control characters",
    "name = \"io_kiocb\"",
);
const ORDER: Key = Key {
    words: &["auto", "large", "max"],
    ..key(
        "order",
        "`auto`, `large`, `max` or an integer from 0 to 9",
        "order = large",
    )
};
const ALIGN: Key = Key {
    words: &["natural", "cache_line"],
    ..key(
        "align",
        "`natural`, `cache_line` or a power of two from 1 to 32768",
        "align = cache_line",
    )
};
const SHEAF_CAPACITY: Key = key(
    "sheaf_capacity",
    "an integer from 0 to 32768",
    "sheaf_capacity = 256",
);
const BARN: Key = key(
    "barn",
    "two integers from 0 to 64, `(full, empty)`",
    "barn = (10, 10)",
);
const MIN_PARTIAL: Key = key(
    "min_partial",
    "an integer from 0 to 65536",
    "min_partial = 5",
);
const LIMIT: Key = key(
    "limit",
    "an integer of at least 1 that fits a `usize`",
    "limit = 1000",
);
const RESERVE: Key = key("reserve", "an integer that fits a `usize`", "reserve = 10");
const DEBUG: Key = key(
    "debug",
    "a string literal of the letters F, Z, P, U, T and A",
    "debug = \"FP\"",
);
const CRATE: Key = key(
    "crate",
    "a path to the `sheaves` crate",
    "crate = path::to::sheaves",
);

const fn key(name: &'static str, expects: &'static str, example: &'static str) -> Key {
    Key {
        name,
        expects,
        example,
        words: &[],
    }
}

/// Judges all of `input`. The result is fit for `expand` if `errors` is still empty, and for `fallback`
/// always.
pub(crate) fn validate(input: &Input<'_>, errors: &mut Errors) -> Options {
    shape(input, errors);
    let mut options = Options {
        name: snake_case(&input.ident.unraw().to_string()),
        order: None,
        align: None,
        sheaf_capacity: None,
        barn: None,
        min_partial: None,
        limit: None,
        reserve: None,
        debug: None,
        zero_on_free: false,
        strict_layout: false,
        krate: parse_quote!(::sheaves),
    };
    let mut once = Once::default();
    for entry in &input.entries {
        if once.admits(&entry.key, errors) {
            options.set(entry, errors);
        }
    }
    if !once.saw(NAME.name) && !value::is_name(&options.name) {
        let bytes = options.name.len();
        let message = format!(
            "a pool named after this type would have a name of {bytes} bytes, and the most is {MAX_NAME}; \
             give it one with `#[pool(name = \"...\")]`"
        );
        errors.push(Error::new_spanned(input.ident, message));
    }
    if let (Some(limit), Some(reserve)) = (&options.limit, &options.reserve) {
        if reserve.value > limit.value {
            errors.push(Error::new(
                reserve.span,
                format!(
                    "`reserve` must be at most the `limit`, {}, not `{}`",
                    limit.value, reserve.value
                ),
            ));
        }
    }
    options
}

impl Options {
    /// Takes one entry.
    fn set(&mut self, entry: &Entry, errors: &mut Errors) {
        match entry.key.to_string().as_str() {
            "name" => {
                if let Some(name) = errors.take(read(&NAME, entry, value::name)) {
                    self.name = name.value;
                }
            }
            "order" => self.order = errors.take(read(&ORDER, entry, value::order)),
            "align" => self.align = errors.take(read(&ALIGN, entry, value::align)),
            "sheaf_capacity" => {
                let capacity = read(&SHEAF_CAPACITY, entry, |e| value::integer(e, 0..=32768));
                self.sheaf_capacity = errors.take(capacity);
            }
            "barn" => self.barn = errors.take(read(&BARN, entry, value::barn)),
            "min_partial" => {
                let slabs = read(&MIN_PARTIAL, entry, |e| value::integer(e, 0..=65536));
                self.min_partial = errors.take(slabs);
            }
            "limit" => {
                let objects = read(&LIMIT, entry, |e| value::integer(e, 1..=usize::MAX));
                self.limit = errors.take(objects);
            }
            "reserve" => {
                let objects = read(&RESERVE, entry, |e| value::integer(e, 0..=usize::MAX));
                self.reserve = errors.take(objects);
            }
            "debug" => self.debug = errors.take(read(&DEBUG, entry, value::debug)),
            "zero_on_free" => self.zero_on_free = errors.take(flag(entry)).is_some(),
            "strict_layout" => self.strict_layout = errors.take(flag(entry)).is_some(),
            "crate" => {
                if let Some(path) = errors.take(read(&CRATE, entry, value::path)) {
                    self.krate = path.value;
                }
            }
            unknown => errors.push(Error::new_spanned(&entry.key, unknown_key(unknown))),
        }
    }
}

fn flag(entry: &Entry) -> syn::Result<()> {
    let name = &entry.key;
    let message = format!("`{name}` is a flag: write it without a value");
    match &entry.value {
        Value::Bare => Ok(()),
        Value::Missing => Err(Error::new_spanned(name, message)),
        Value::Given(value) => Err(Error::new_spanned(value, message)),
        Value::Call(tokens) | Value::Malformed(tokens) => Err(Error::new_spanned(tokens, message)),
    }
}

fn unknown_key(word: &str) -> String {
    match nearest(word, &KEYS) {
        Some(near) => format!("unknown key `{word}`; did you mean `{near}`?"),
        None => format!("unknown key `{word}`; the keys are `{}`", KEYS.join("`, `")),
    }
}

/// The keys seen so far.
#[derive(Default)]
struct Once<'a>(Vec<(&'a Ident, bool)>);

impl<'a> Once<'a> {
    /// Whether `key` is new. If not, both places are told.
    fn admits(&mut self, key: &'a Ident, errors: &mut Errors) -> bool {
        let Some((first, told)) = self.0.iter_mut().find(|(first, _)| *first == key) else {
            self.0.push((key, false));
            return true;
        };
        if !core::mem::replace(told, true) {
            errors.push(Error::new_spanned(
                first,
                format!("`{key}` is first given here"),
            ));
        }
        errors.push(Error::new_spanned(
            key,
            format!("`{key}` is given again here; keep one"),
        ));
        false
    }

    fn saw(&self, key: &str) -> bool {
        self.0.iter().any(|(seen, _)| *seen == key)
    }
}

/// Judges the type itself.
fn shape(input: &Input<'_>, errors: &mut Errors) {
    if let Data::Union(data) = input.data {
        errors.push(Error::new_spanned(
            data.union_token,
            "`Pooled` can be derived for structs and enums only; wrap the union in a struct",
        ));
    }
    if !input.generics.params.is_empty() {
        errors.push(Error::new_spanned(
            &input.generics.params,
            "`Pooled` cannot be derived for a generic type: its pool is a `static`, which has one type; \
             wrap each concrete type in a struct, or make pools with `Pool::builder`",
        ));
    }
    if let Some(tail) = unsized_tail(input) {
        errors.push(Error::new_spanned(
            tail,
            "`Pooled` cannot be derived for an unsized type: all slots of a pool have one size",
        ));
    }
    for attribute in &input.misplaced {
        errors.push(Error::new_spanned(
            attribute,
            "`#[pool(...)]` configures the pool of the whole type; write it above the `struct` or `enum`",
        ));
    }
}

/// The last field's type, if it is plainly unsized. (An alias of one is left to the compiler.)
pub(crate) fn unsized_tail<'a>(input: &Input<'a>) -> Option<&'a Type> {
    let tail = &input.tail()?.ty;
    match tail {
        Type::Slice(_) | Type::TraitObject(_) => Some(tail),
        Type::Path(path) if path.path.is_ident("str") => Some(tail),
        _ => None,
    }
}

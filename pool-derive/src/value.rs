//! Values: readers of each kind, and the message for a value that a reader does not take.
//!
//! A reader gives the value or the part of the expression it cannot take. One function words the refusal
//! for all keys: what the value must be, what it is, and the repair where it is plain (quotes too many or
//! missing, a word misspelt).

#![forbid(unsafe_code)]

use core::ops::RangeInclusive;

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Path, PathArguments, UnOp};

use crate::attr::{Entry, Value};
use crate::fallback::Errors;
use crate::word::nearest;

/// A key of `#[pool(...)]` that takes a value.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What a value must be; follows the words "must be".
    pub(crate) expects: &'static str,
    /// The key with a good value.
    pub(crate) example: &'static str,
    /// The words it takes, to suggest the near one.
    pub(crate) words: &'static [&'static str],
}

/// What a reader makes of an expression: a value, or the parts that it cannot take.
pub(crate) type Read<'e, T> = Result<T, Vec<&'e Expr>>;

/// A value and its place in the source.
#[derive(Clone, Copy)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A page order.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Auto,
    Large,
    Max,
    Exact(u8),
}

/// An alignment.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Natural,
    CacheLine,
    Exact(usize),
}

/// The longest pool name, in bytes.
pub(crate) const MAX_NAME: usize = 64;
/// The highest page order.
pub(crate) const MAX_ORDER: u8 = 9;
const MAX_ALIGN: usize = 32 * 1024;
const MAX_BARN: usize = 64;
const DEBUG_LETTERS: &str = "FZPUTA";
const INTEGER_TYPES: [&str; 13] = [
    "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
];

/// Reads the value of `entry`, whose key is `key`.
pub(crate) fn read<T, R>(key: &Key, entry: &Entry, reader: R) -> syn::Result<At<T>>
where
    R: Fn(&Expr) -> Read<'_, T>,
{
    let (name, example) = (key.name, key.example);
    match &entry.value {
        Value::Bare | Value::Missing => Err(Error::new_spanned(
            &entry.key,
            format!("`{name}` needs a value: `{example}`"),
        )),
        Value::Call(arguments) => Err(Error::new_spanned(
            arguments,
            format!("`{name}` takes its value after `=`: `{example}`"),
        )),
        Value::Malformed(tokens) => Err(Error::new_spanned(
            tokens,
            format!("`{name}` must be {}", key.expects),
        )),
        Value::Given(given) => {
            let given = ungrouped(given);
            reader(given)
                .map(|value| At {
                    value,
                    span: given.span(),
                })
                .map_err(|culprits| {
                    let mut errors = Errors::default();
                    for culprit in culprits {
                        errors.push(refusal(key, culprit, &reader));
                    }
                    errors.into_error().expect("a reader blames something")
                })
        }
    }
}

/// Says why `reader` did not take `culprit`, or how to write it so that it does.
fn refusal<T, R>(key: &Key, culprit: &Expr, reader: R) -> Error
where
    R: Fn(&Expr) -> Read<'_, T>,
{
    let name = key.name;
    let message = match culprit {
        Expr::Lit(ExprLit {
            lit: Lit::Str(quoted),
            ..
        }) if quoted
            .parse::<Expr>()
            .is_ok_and(|bare| reader(&bare).is_ok()) =>
        {
            format!(
                "`{name}` takes its value without quotes: `{name} = {}`",
                quoted.value().trim()
            )
        }
        Expr::Path(_) if word(culprit).is_some_and(|bare| reader(&quoted(&bare)).is_ok()) => {
            let bare = culprit.to_token_stream();
            format!("`{name}` takes its value in quotes: `{name} = \"{bare}\"`")
        }
        _ => {
            let found = describe(culprit)
                .map(|it| format!(", not {it}"))
                .unwrap_or_default();
            let hint = match culprit {
                Expr::Path(path) => nearest(&last_word(&path.path), key.words),
                _ => None,
            };
            let hint = hint
                .map(|word| format!("; did you mean `{word}`?"))
                .unwrap_or_default();
            format!("`{name}` must be {}{found}{hint}", key.expects)
        }
    };
    Error::new_spanned(culprit, message)
}

/// `expr` as it would be quoted in a sentence; `None` if it is long or of many tokens.
fn describe(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if text.value().len() > MAX_NAME => {
            Some(format!("a string of {} bytes", text.value().len()))
        }
        Expr::Lit(literal) => Some(format!("`{}`", literal.to_token_stream())),
        Expr::Path(path) => Some(format!("`{}`", path.path.get_ident()?)),
        // As tokens there would be a space behind the sign.
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match &*unary.expr {
            Expr::Lit(literal) => Some(format!("`-{}`", literal.to_token_stream())),
            _ => None,
        },
        _ => None,
    }
}

/// An integer within `range`.
pub(crate) fn integer(expr: &Expr, range: RangeInclusive<usize>) -> Read<'_, usize> {
    let Expr::Lit(ExprLit {
        lit: Lit::Int(digits),
        ..
    }) = ungrouped(expr)
    else {
        return Err(vec![expr]);
    };
    let value = digits
        .base10_parse::<usize>()
        .ok()
        .filter(|n| range.contains(n));
    value
        .filter(|_| INTEGER_TYPES.contains(&digits.suffix()))
        .ok_or_else(|| vec![expr])
}

/// A page order.
pub(crate) fn order(expr: &Expr) -> Read<'_, Order> {
    match word(expr).as_deref() {
        Some("auto") => Ok(Order::Auto),
        Some("large") => Ok(Order::Large),
        Some("max") => Ok(Order::Max),
        _ => {
            let order = integer(expr, 0..=usize::from(MAX_ORDER))?;
            Ok(Order::Exact(
                u8::try_from(order).expect("no more than MAX_ORDER"),
            ))
        }
    }
}

/// An alignment.
pub(crate) fn align(expr: &Expr) -> Read<'_, Align> {
    match word(expr).as_deref() {
        Some("natural") => Ok(Align::Natural),
        Some("cache_line") => Ok(Align::CacheLine),
        _ => match integer(expr, 1..=MAX_ALIGN)? {
            align if align.is_power_of_two() => Ok(Align::Exact(align)),
            _ => Err(vec![expr]),
        },
    }
}

/// The full and the empty sheaves of a barn.
pub(crate) fn barn(expr: &Expr) -> Read<'_, (usize, usize)> {
    match expr {
        Expr::Tuple(pair) if pair.elems.len() == 2 => {
            match (
                integer(&pair.elems[0], 0..=MAX_BARN),
                integer(&pair.elems[1], 0..=MAX_BARN),
            ) {
                (Ok(full), Ok(empty)) => Ok((full, empty)),
                (full, empty) => Err([full, empty]
                    .into_iter()
                    .filter_map(Result::err)
                    .flatten()
                    .collect()),
            }
        }
        _ => Err(vec![expr]),
    }
}

/// A pool's name.
pub(crate) fn name(expr: &Expr) -> Read<'_, String> {
    text(expr)
        .filter(|name| is_name(name))
        .ok_or_else(|| vec![expr])
}

/// Whether a pool may be called `name`: it is a column of the tables that list pools.
pub(crate) fn is_name(name: &str) -> bool {
    let breaks_table = |c: char| c.is_whitespace() || c.is_control();
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(breaks_table)
}

/// Debug letters; as in the builder, none are letters too.
pub(crate) fn debug(expr: &Expr) -> Read<'_, String> {
    let all_known = |letters: &String| letters.chars().all(|c| DEBUG_LETTERS.contains(c));
    text(expr).filter(all_known).ok_or_else(|| vec![expr])
}

/// A path without generic arguments.
pub(crate) fn path(expr: &Expr) -> Read<'_, Path> {
    match expr {
        Expr::Path(path) if path.qself.is_none() && is_plain(&path.path) => Ok(path.path.clone()),
        _ => Err(vec![expr]),
    }
}

fn is_plain(path: &Path) -> bool {
    path.segments
        .iter()
        .all(|segment| matches!(segment.arguments, PathArguments::None))
}

/// A string literal's text.
fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if text.suffix().is_empty() => Some(text.value()),
        _ => None,
    }
}

/// A lone identifier.
fn word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => path.path.get_ident().map(Ident::to_string),
        _ => None,
    }
}

/// The last segment of `path`: `LARGE` of `Order::LARGE`.
fn last_word(path: &Path) -> String {
    path.segments
        .last()
        .map(|segment| segment.ident.to_string())
        .unwrap_or_default()
}

/// `word` as a string literal.
fn quoted(word: &str) -> Expr {
    let lit = Lit::Str(LitStr::new(word, Span::call_site()));
    Expr::Lit(ExprLit {
        attrs: Vec::new(),
        lit,
    })
}

/// `expr` without the invisible group that a `macro_rules!` fragment puts around it.
fn ungrouped(mut expr: &Expr) -> &Expr {
    while let Expr::Group(group) = expr {
        expr = &group.expr;
    }
    expr
}

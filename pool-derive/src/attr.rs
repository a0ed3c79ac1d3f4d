//! Parsing of `#[pool(...)]` into one [`Entry`] a key, spans kept.
//!
//! Only the shape `key`, `key = value`, separated by commas, is looked at here; what a key means is for
//! `valid`. After an error parsing goes on behind the next comma, so that all errors of an attribute are
//! told at once.

#![forbid(unsafe_code)]

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Expr, Ident, Meta, Token, token};

use crate::fallback::Errors;

/// One `key` or `key = value`.
pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// What follows a key.
pub(crate) enum Value {
    /// Nothing: `key`.
    Bare,
    /// An equals sign and nothing else: `key =`.
    Missing,
    /// `key(...)`, as other macros have it.
    Call(TokenStream),
    /// `key = expression`.
    Given(Expr),
    /// `key = ` and something that is no expression.
    Malformed(TokenStream),
}

/// Appends the entries of `attribute` to `entries`.
pub(crate) fn parse(attribute: &Attribute, entries: &mut Vec<Entry>, errors: &mut Errors) {
    const SHAPE: &str = "expected `#[pool(key = value, ...)]`";
    let Meta::List(list) = &attribute.meta else {
        return errors.push(Error::new_spanned(&attribute.meta, SHAPE));
    };
    if !matches!(list.delimiter, syn::MacroDelimiter::Paren(_)) {
        return errors.push(Error::new_spanned(&attribute.meta, SHAPE));
    }
    let parsed = list.parse_args_with(|input: ParseStream<'_>| {
        while !input.is_empty() {
            match entry(input) {
                Ok(entry) => entries.push(entry),
                Err(error) => errors.push(error),
            }
            skip_to_comma(input)?;
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    });
    if let Err(error) = parsed {
        errors.push(error);
    }
}

/// Reads a key and what follows it, up to a comma.
fn entry(input: ParseStream<'_>) -> syn::Result<Entry> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error("expected a key, such as `order`"));
    }
    // `crate` is a keyword.
    let key = input.call(Ident::parse_any)?;
    let value = if input.is_empty() || input.peek(Token![,]) {
        Value::Bare
    } else if input.peek(token::Paren) {
        let arguments = input.parse::<TokenTree>()?;
        Value::Call(arguments.into_token_stream())
    } else if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        assigned(skip_to_comma(input)?)?
    } else {
        return Err(input.error(format!("expected `=` or `,` after `{key}`")));
    };
    Ok(Entry { key, value })
}

/// Sorts the tokens between an equals sign and a comma.
fn assigned(tokens: TokenStream) -> syn::Result<Value> {
    if tokens.is_empty() {
        return Ok(Value::Missing);
    }
    let with_rest = |input: ParseStream<'_>| Ok((input.parse::<Expr>()?, input.parse()?));
    let Ok::<(Expr, TokenStream), _>((value, rest)) = with_rest.parse2(tokens.clone()) else {
        return Ok(Value::Malformed(tokens));
    };
    match rest.into_iter().next() {
        None => Ok(Value::Given(value)),
        Some(token) => Err(Error::new_spanned(token, "expected `,` before this")),
    }
}

/// Takes what stands before the next comma, or before the end.
fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut skipped = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        skipped.extend([input.parse::<TokenTree>()?]);
    }
    Ok(skipped)
}

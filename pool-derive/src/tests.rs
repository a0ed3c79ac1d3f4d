//! Tests of what is taken and what is refused, from tokens to messages. Where the compiler shows the errors
//! is tested in the main crate.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_quote};

use crate::{ast, fallback, valid};

/// The messages for `node`, in the order in which they are told.
fn messages(node: &DeriveInput) -> Vec<String> {
    let mut errors = fallback::Errors::default();
    let input = ast::Input::from_syn(node, &mut errors);
    valid::validate(&input, &mut errors);
    errors
        .into_error()
        .into_iter()
        .flatten()
        .map(|error| error.to_string())
        .collect()
}

/// The messages for a unit struct with `#[pool(attribute)]`.
fn messages_of(attribute: &str) -> Vec<String> {
    let tokens: TokenStream = attribute.parse().expect("the test's tokens are balanced");
    messages(&parse_quote!(
        #[pool(#tokens)]
        struct Unit;
    ))
}

fn assert_taken(attribute: &str) {
    assert_eq!(messages_of(attribute), [""; 0], "{attribute}");
}

/// `attribute` has one error, and it holds each of `parts`.
fn assert_refused(attribute: &str, parts: &[&str]) {
    let messages = messages_of(attribute);
    assert_eq!(messages.len(), 1, "{attribute}: {messages:?}");
    for part in parts {
        assert!(messages[0].contains(part), "{attribute}: {}", messages[0]);
    }
}

#[test]
fn numbers_are_taken_up_to_their_bound() {
    for (key, low, high) in [
        ("order", 0, 9),
        ("sheaf_capacity", 0, 32_768),
        ("min_partial", 0, 65_536),
    ] {
        assert_taken(&format!("{key} = {low}"));
        assert_taken(&format!("{key} = {high}"));
        let above = high + 1;
        assert_refused(
            &format!("{key} = {above}"),
            &[
                &format!("`{key}`"),
                &format!("{low} to {high}"),
                &format!("`{above}`"),
            ],
        );
        assert_refused(&format!("{key} = -1"), &["`-1`"]);
    }
    for pair in ["(0, 0)", "(64, 64)", "(0, 64,)"] {
        assert_taken(&format!("barn = {pair}"));
    }
    for pair in ["(65, 0)", "(0, 65)"] {
        assert_refused(&format!("barn = {pair}"), &["0 to 64", "`65`"]);
    }
    assert_eq!(messages_of("barn = (66, 65)").len(), 2);
    assert_taken("limit = 1");
    assert_taken("limit = 18446744073709551615");
    assert_refused("limit = 0", &["at least 1", "`0`"]);
    assert_refused(
        "limit = 18446744073709551616",
        &["usize", "`18446744073709551616`"],
    );
}

#[test]
fn alignments_are_powers_of_two() {
    for align in 0..=15 {
        assert_taken(&format!("align = {}", 1_u32 << align));
    }
    for align in [0_u32, 3, 48, 32_767, 32_769, 65_536] {
        assert_refused(
            &format!("align = {align}"),
            &["power of two from 1 to 32768", &format!("`{align}`")],
        );
    }
}

#[test]
fn integers_are_taken_in_every_spelling() {
    for number in [
        "10",
        "10usize",
        "1_0",
        "0xa",
        "0o12u8",
        "0b1010i64",
        "10u128",
    ] {
        assert_taken(&format!("sheaf_capacity = {number}"));
    }
    for number in [
        "10kb", "10f32", "10.0", "1e1", "true", "'a'", "10 + 0", "(10)", "[10]", "CAPACITY",
    ] {
        assert_refused(
            &format!("sheaf_capacity = {number}"),
            &["must be an integer"],
        );
    }
}

#[test]
fn a_reserve_is_held_against_the_limit_wherever_it_stands() {
    assert_taken("reserve = 10, limit = 10");
    assert_taken("reserve = 1000000");
    for attribute in ["reserve = 11, limit = 10", "limit = 10, reserve = 11"] {
        assert_refused(attribute, &["`reserve`", "10", "`11`"]);
    }
}

#[test]
fn quotes_are_asked_for_where_they_belong() {
    for (attribute, repaired) in [
        ("order = \"large\"", "`order = large`"),
        ("align = \"64\"", "`align = 64`"),
        ("barn = \"(1, 2)\"", "`barn = (1, 2)`"),
        ("crate = \"a::b\"", "`crate = a::b`"),
        ("name = kiocb", "`name = \"kiocb\"`"),
        ("debug = FZ", "`debug = \"FZ\"`"),
    ] {
        assert_refused(attribute, &[repaired]);
    }
    // Neither would do with or without them.
    for attribute in [
        "order = \"10\"",
        "order = \"big\"",
        "debug = XY",
        "name = a::b",
    ] {
        assert_refused(attribute, &["must be"]);
    }
}

#[test]
fn words_and_keys_are_suggested() {
    for (attribute, suggestion) in [
        ("order = Large", "`large`"),
        ("order = Order::MAX", "`max`"),
        ("align = cache", "`cache_line`"),
        ("ordre = max", "`order`"),
        ("limits = 10", "`limit`"),
        ("partial = 10", "`min_partial`"),
        ("Zero_On_Free", "`zero_on_free`"),
    ] {
        assert_refused(attribute, &["did you mean", suggestion]);
    }
    assert_refused(
        "source = heap",
        &[
            "unknown key `source`",
            "`name`, `order`, `align`",
            "`crate`",
        ],
    );
}

#[test]
fn debug_letters_are_those_of_the_builder() {
    for letters in ["", "F", "FZPUTA", "PF", "FF"] {
        assert_taken(&format!("debug = \"{letters}\""));
    }
    for letters in ["f", "FX", "F,Z", " F"] {
        assert_refused(
            &format!("debug = \"{letters}\""),
            &["F, Z, P, U, T and A", letters],
        );
    }
}

#[test]
fn names_fit_a_table() {
    for name in ["a", "io_kiocb", "kmalloc-64", "größe", &"x".repeat(64)] {
        assert_taken(&format!("name = \"{name}\""));
    }
    for name in [
        "",
        " ",
        "a b",
        "a\\tb",
        "a\\n",
        "a\\u{a0}b",
        "\\0",
        &"x".repeat(65),
        &"ä".repeat(33),
    ] {
        assert_refused(
            &format!("name = \"{name}\""),
            &["1 to 64 bytes without white space"],
        );
    }
    let long: DeriveInput = {
        let ident = quote::format_ident!("T{}", "x".repeat(64));
        parse_quote!(struct #ident;)
    };
    assert!(
        messages(&long)[0].contains("65 bytes"),
        "{:?}",
        messages(&long)
    );
    let named = DeriveInput {
        attrs: vec![parse_quote!(#[pool(name = "short")])],
        ..long
    };
    assert_eq!(messages(&named), [""; 0]);
}

#[test]
fn a_key_given_again_is_told_at_both_places() {
    let again = messages_of("limit = 1, order = max, limit = 0, limit = 2");
    assert_eq!(
        again,
        [
            "`limit` is first given here",
            "`limit` is given again here; keep one",
            "`limit` is given again here; keep one"
        ]
    );
}

#[test]
fn reading_goes_on_behind_an_error() {
    let messages = messages_of(
        "5, order: large, limit = 1 2, oder, barn(1), name, zero_on_free = no, , align = 3",
    );
    let starts = [
        "expected a key",
        "expected `=` or `,` after `order`",
        "expected `,`",
        "expected a key",
        "unknown key `oder`",
        "`barn` takes its value after `=`",
        "`name` needs a value",
        "`zero_on_free` is a flag",
        "`align` must be",
    ];
    assert_eq!(messages.len(), starts.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(starts) {
        assert!(message.starts_with(start), "{message} / {start}");
    }
}

#[test]
fn other_attributes_are_not_looked_at() {
    let node = parse_quote!(
        #[repr(C)]
        #[serde(order = nonsense)]
        /// Documented.
        struct Kiocb {
            #[cfg(any())]
            gone: u8,
        }
    );
    assert_eq!(messages(&node), [""; 0]);
}

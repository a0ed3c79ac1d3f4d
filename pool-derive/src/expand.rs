//! The code that is emitted: an implementation of `Pooled` over one `static`, and a check of what depends
//! on the type's size. Both call the main crate; no logic is repeated here.
//!
//! The code stands in `const _`, so it adds no name to the scope of the type and works inside functions. It
//! names no primitive type and nothing of the prelude, since both may be shadowed there. All its tokens but
//! the type's name and the user's path to the crate have a span of the macro; the compiler takes the
//! `unsafe` for the macro's, so that even `#![forbid(unsafe_code)]` lets it pass, and no `#[allow]` is
//! needed, which a `forbid` would refuse.

#![forbid(unsafe_code)]

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, Path};

use crate::valid::Options;
use crate::value::{Align, At, MAX_ORDER, Order};

/// The implementation for the type `ident`.
///
/// The trait's promise, that `pool` always returns the one pool of the type, holds because the `static` is
/// declared inside: nothing else can name it, and nothing is done with it but to build it once.
pub(crate) fn expand(ident: &Ident, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let name = &options.name;
    let calls = calls(options);
    let fits = fits(ident, options);
    quote! {
        const _: () = {
            #[automatically_derived]
            // SAFETY: `pool` returns the one static pool every time.
            unsafe impl #krate::Pooled for #ident {
                fn pool() -> &'static #krate::Pool<Self> {
                    static POOL: #krate::private::StaticPool<#ident> = #krate::private::StaticPool::new();
                    POOL.get_or_build(|| #krate::Pool::<#ident>::builder(#name) #calls)
                }
            }
            #fits
        };
    }
}

/// A call of the builder for each option given.
fn calls(options: &Options) -> TokenStream {
    let krate = &options.krate;
    let mut calls = TokenStream::new();
    let mut call = |method: &str, arguments: TokenStream| {
        let method = Ident::new(method, Span::call_site());
        calls.extend(quote!(.#method(#arguments)));
    };
    if let Some(order) = options.order {
        call("order", order_tokens(krate, order.value));
    }
    if let Some(align) = options.align {
        call("align", align_tokens(krate, align.value));
    }
    if let Some(At {
        value: (full, empty),
        ..
    }) = options.barn
    {
        call("barn", quote!(#full, #empty));
    }
    for (method, number) in [
        ("sheaf_capacity", options.sheaf_capacity),
        ("min_partial", options.min_partial),
        ("limit", options.limit),
        ("reserve", options.reserve),
    ] {
        if let Some(number) = number {
            call(method, number.value.to_token_stream());
        }
    }
    if let Some(letters) = &options.debug {
        let letters = &letters.value;
        call("debug", quote!(#krate::private::debug_flags(#letters)));
    }
    if options.zero_on_free {
        call("zero_on_free", TokenStream::new());
    }
    if options.strict_layout {
        call("strict_layout", TokenStream::new());
    }
    calls
}

/// A constant that fails to evaluate if no slab of this order and alignment can hold the type. The failure
/// is shown at the value that is to blame.
fn fits(ident: &Ident, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let order = match options.order.map_or(Order::Auto, |it| it.value) {
        Order::Auto => u8::MAX,
        Order::Large => LARGE_ORDER,
        Order::Max => MAX_ORDER,
        Order::Exact(order) => order,
    };
    let align = match options.align.map_or(Align::Natural, |it| it.value) {
        Align::Natural => 0,
        Align::CacheLine => CACHE_LINE,
        Align::Exact(align) => align,
    };
    let blamed = options
        .order
        .map(|it| it.span)
        .or(options.align.map(|it| it.span));
    let span = blamed
        .unwrap_or(ident.span())
        .resolved_at(Span::mixed_site());
    // An error is shown from an expression's first token to its last: with the parentheses both have the
    // span.
    let check = quote_spanned!(span=> (#krate::private::assert_fits::<#ident>)(#order, #align));
    quote!(const _: () = #check;)
}

fn order_tokens(krate: &Path, order: Order) -> TokenStream {
    match order {
        Order::Auto => quote!(#krate::Order::AUTO),
        Order::Large => quote!(#krate::Order::LARGE),
        Order::Max => quote!(#krate::Order::MAX),
        Order::Exact(order) => quote!(#krate::Order::new(#order)),
    }
}

fn align_tokens(krate: &Path, align: Align) -> TokenStream {
    match align {
        Align::Natural => quote!(#krate::Align::NATURAL),
        Align::CacheLine => quote!(#krate::Align::CACHE_LINE),
        Align::Exact(bytes) => quote!(#krate::Align::new(#bytes)),
    }
}

/// `Order::LARGE`: 2 MiB in pages of 64 KiB.
const LARGE_ORDER: u8 = 5;

/// `Align::CACHE_LINE` in bytes, for any object that is more than half a line.
const CACHE_LINE: usize = 64;

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;
    use syn::{DeriveInput, parse_quote};

    use crate::derive;

    fn assert_expands(node: &DeriveInput, expected: &TokenStream) {
        assert_eq!(derive(node).to_string(), expected.to_string());
    }

    #[test]
    fn without_attributes_only_the_name_is_set() {
        let node = parse_quote!(
            struct TreeNode {
                keys: [u64; 16],
            }
        );
        assert_expands(
            &node,
            &quote! {
                const _: () = {
                    #[automatically_derived]
                    // SAFETY: `pool` returns the one static pool every time.
                    unsafe impl ::sheaves::Pooled for TreeNode {
                        fn pool() -> &'static ::sheaves::Pool<Self> {
                            static POOL: ::sheaves::private::StaticPool<TreeNode> =
                                ::sheaves::private::StaticPool::new();
                            POOL.get_or_build(|| ::sheaves::Pool::<TreeNode>::builder("tree_node"))
                        }
                    }
                    const _: () = (::sheaves::private::assert_fits::<TreeNode>)(255u8, 0usize);
                };
            },
        );
    }

    #[test]
    fn every_key_becomes_a_call_of_the_builder() {
        let node = parse_quote!(
            #[pool(name = "io_kiocb", order = large, align = cache_line, sheaf_capacity = 256, barn = (10, 11))]
            #[pool(
                min_partial = 5,
                limit = 1000,
                reserve = 10,
                debug = "FP",
                zero_on_free,
                strict_layout
            )]
            #[pool(crate = crate::vendored::sheaves)]
            enum Kiocb {
                Read,
                Write,
            }
        );
        assert_expands(
            &node,
            &quote! {
                const _: () = {
                    #[automatically_derived]
                    // SAFETY: `pool` returns the one static pool every time.
                    unsafe impl crate::vendored::sheaves::Pooled for Kiocb {
                        fn pool() -> &'static crate::vendored::sheaves::Pool<Self> {
                            static POOL: crate::vendored::sheaves::private::StaticPool<Kiocb> =
                                crate::vendored::sheaves::private::StaticPool::new();
                            POOL.get_or_build(|| crate::vendored::sheaves::Pool::<Kiocb>::builder("io_kiocb")
                                .order(crate::vendored::sheaves::Order::LARGE)
                                .align(crate::vendored::sheaves::Align::CACHE_LINE)
                                .barn(10usize, 11usize)
                                .sheaf_capacity(256usize)
                                .min_partial(5usize)
                                .limit(1000usize)
                                .reserve(10usize)
                                .debug(crate::vendored::sheaves::private::debug_flags("FP"))
                                .zero_on_free()
                                .strict_layout())
                        }
                    }
                    const _: () = (crate::vendored::sheaves::private::assert_fits::<Kiocb>)(5u8, 64usize);
                };
            },
        );
    }

    #[test]
    fn the_name_is_the_types_in_snake_case() {
        let names: [(DeriveInput, &str); 4] = [
            (
                parse_quote!(
                    struct Kiocb;
                ),
                "\"kiocb\"",
            ),
            (
                parse_quote!(
                    struct HTTPRequest;
                ),
                "\"http_request\"",
            ),
            (
                parse_quote!(
                    struct r#struct;
                ),
                "\"struct\"",
            ),
            (
                parse_quote!(
                    enum Größe {}
                ),
                "\"größe\"",
            ),
        ];
        for (node, name) in names {
            let output = derive(&node).to_string();
            assert!(output.contains(&format!("builder ({name})")), "{output}");
        }
    }
}

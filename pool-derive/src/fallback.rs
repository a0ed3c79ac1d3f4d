//! What is emitted when the input is wrong: every error, and a stub of the implementation, so that each use
//! of the type as `Pooled` does not add an error of its own.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Path};

use crate::ast::Input;
use crate::valid::unsized_tail;

/// The errors found so far, to be told at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds one.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Keeps the error of `result`, or gives its value.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// All of them as one, if there are any.
    pub(crate) fn into_error(self) -> Option<Error> {
        self.0
    }
}

/// `error` and the stub for the type of `input`.
pub(crate) fn expand(input: &Input<'_>, krate: &Path, error: &Error) -> TokenStream {
    let ident = input.ident;
    let messages = error.to_compile_error();
    if unsized_tail(input).is_some() {
        // No implementation can be: that `Self` is sized would be an error of its own, even as a condition.
        return messages;
    }
    let (impl_generics, ty_generics, _) = input.generics.split_for_impl();
    let given = input
        .generics
        .where_clause
        .iter()
        .flat_map(|clause| &clause.predicates);
    quote! {
        #messages
        const _: () = {
            #[automatically_derived]
            // SAFETY: never compiled into a program: an error goes with it.
            unsafe impl #impl_generics #krate::Pooled for #ident #ty_generics
            where
                // `Pooled` asks for it, and a generic type need not have it.
                Self: 'static,
                #(#given,)*
            {
                fn pool() -> &'static #krate::Pool<Self> {
                    ::core::unreachable!()
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::parse_quote;

    use crate::derive;

    #[test]
    fn after_an_error_a_stub_stands_in() {
        let node = parse_quote!(
            #[pool(crate = renamed, order = 10)]
            struct Pair<'a, T: Copy = u8>(&'a T)
            where
                T: 'a;
        );
        let output = derive(&node).to_string();
        let stub = quote! {
            // SAFETY: never compiled into a program: an error goes with it.
            unsafe impl<'a, T: Copy> renamed::Pooled for Pair<'a, T>
            where
                Self: 'static,
                T: 'a,
            {
                fn pool() -> &'static renamed::Pool<Self> {
                    ::core::unreachable!()
                }
            }
        };
        assert_eq!(output.matches("compile_error").count(), 2, "{output}");
        assert!(output.contains(&stub.to_string()), "{output}");
        assert!(
            !output.contains("StaticPool") && !output.contains("assert_fits"),
            "{output}"
        );
    }

    #[test]
    fn an_unsized_type_gets_no_stub() {
        for node in [
            parse_quote!(
                struct Bytes(u8, [u8]);
            ),
            parse_quote!(
                struct Text(str);
            ),
            parse_quote!(
                struct Object {
                    object: dyn Send,
                }
            ),
        ] {
            let output = derive(&node).to_string();
            assert!(
                output.contains("compile_error") && !output.contains("impl"),
                "{output}"
            );
        }
    }
}

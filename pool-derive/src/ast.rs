//! The input in the derive's own terms: the type, the entries of its `#[pool(...)]` attributes, and the
//! attributes that stand where they do nothing.

#![forbid(unsafe_code)]

use syn::{Attribute, Data, DeriveInput, Field, Generics, Ident};

use crate::attr::{self, Entry};
use crate::fallback::Errors;

/// A type with `#[derive(Pooled)]` on it.
pub(crate) struct Input<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) generics: &'a Generics,
    pub(crate) data: &'a Data,
    /// In the order written, over all `#[pool(...)]` attributes of the type.
    pub(crate) entries: Vec<Entry>,
    /// `#[pool(...)]` on fields and variants. The compiler lets a helper attribute stand there; it would be
    /// ignored.
    pub(crate) misplaced: Vec<&'a Attribute>,
}

impl<'a> Input<'a> {
    /// Takes `node` apart. What is no entry goes to `errors`.
    pub(crate) fn from_syn(node: &'a DeriveInput, errors: &mut Errors) -> Self {
        let mut entries = Vec::new();
        for attribute in node.attrs.iter().filter(|a| is_pool(a)) {
            attr::parse(attribute, &mut entries, errors);
        }
        Self {
            ident: &node.ident,
            generics: &node.generics,
            data: &node.data,
            entries,
            misplaced: inner_attributes(&node.data)
                .filter(|a| is_pool(a))
                .collect(),
        }
    }

    /// The field that may be unsized: the last one of a struct.
    pub(crate) fn tail(&self) -> Option<&'a Field> {
        match self.data {
            Data::Struct(data) => data.fields.iter().next_back(),
            Data::Enum(_) | Data::Union(_) => None,
        }
    }
}

fn is_pool(attribute: &Attribute) -> bool {
    attribute.path().is_ident("pool")
}

/// The attributes of all variants and fields.
fn inner_attributes(data: &Data) -> Box<dyn Iterator<Item = &Attribute> + '_> {
    match data {
        Data::Struct(data) => Box::new(data.fields.iter().flat_map(|f| &f.attrs)),
        Data::Enum(data) => Box::new(
            data.variants
                .iter()
                .flat_map(|v| v.attrs.iter().chain(v.fields.iter().flat_map(|f| &f.attrs))),
        ),
        Data::Union(data) => Box::new(data.fields.named.iter().flat_map(|f| &f.attrs)),
    }
}

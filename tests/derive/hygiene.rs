//! The generated code leans on nothing that the user may have shadowed, hidden or renamed.

/// Without any prelude, with prelude names and primitive types taken by the user's own.
#[no_implicit_prelude]
mod bare {
    #[derive(::sheaves::Pooled)]
    #[pool(name = "bare_option", order = 1, barn = (1, 1), limit = 5, debug = "F", zero_on_free)]
    pub(super) struct Option(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[pool(name = "bare_sized", align = 16, sheaf_capacity = 2)]
    pub(super) struct Sized(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[pool(name = "bare_pooled", strict_layout)]
    pub(super) struct Pooled(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[pool(name = "bare_pool", min_partial = 1, reserve = 1)]
    pub(super) struct Pool(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[expect(
        non_camel_case_types,
        reason = "the name of a primitive type is the point"
    )]
    pub(super) struct usize(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[expect(
        non_camel_case_types,
        reason = "the name of a primitive type is the point"
    )]
    pub(super) struct str(pub(super) ::core::primitive::u8);

    #[derive(::sheaves::Pooled)]
    #[expect(
        clippy::upper_case_acronyms,
        reason = "the name of the generated static"
    )]
    pub(super) struct POOL(pub(super) ::core::primitive::u8);
}

#[test]
fn names_of_the_prelude_may_be_taken() {
    use sheaves::Pooled;

    assert_eq!(
        (bare::Option(1).pooled().0, bare::Option::pool().name()),
        (1, "bare_option")
    );
    assert_eq!(
        (bare::Sized(2).pooled().0, bare::Sized::pool().name()),
        (2, "bare_sized")
    );
    assert_eq!(
        (bare::Pooled(3).pooled().0, bare::Pooled::pool().name()),
        (3, "bare_pooled")
    );
    assert_eq!(
        (bare::Pool(4).pooled().0, bare::Pool::pool().name()),
        (4, "bare_pool")
    );
    assert_eq!(
        (bare::usize(5).pooled().0, bare::usize::pool().name()),
        (5, "usize")
    );
    assert_eq!(
        (bare::str(6).pooled().0, bare::str::pool().name()),
        (6, "str")
    );
    assert_eq!(
        (bare::POOL(7).pooled().0, bare::POOL::pool().name()),
        (7, "pool")
    );
}

mod vendored {
    pub(crate) use ::sheaves as renamed;
}

/// Takes the name of the crate itself, in this module.
mod shadowed {
    mod sheaves {}

    #[derive(crate::hygiene::vendored::renamed::Pooled)]
    #[pool(crate = crate::hygiene::vendored::renamed, order = 2)]
    pub(super) struct Absolute(pub(super) u8);

    #[derive(super::vendored::renamed::Pooled)]
    #[pool(crate = super::vendored::renamed, debug = "FZ")]
    pub(super) struct Relative(pub(super) u8);

    #[derive(super::vendored::renamed::Pooled)]
    pub(super) struct Default(pub(super) u8);
}

#[test]
fn the_crate_may_be_renamed() {
    use sheaves::Pooled;

    assert_eq!(shadowed::Absolute(1).pooled().0, 1);
    assert_eq!(shadowed::Relative(2).pooled().0, 2);
    assert_eq!(shadowed::Default(3).pooled().0, 3);
}

#[test]
fn a_path_local_to_a_function_is_found() {
    use ::sheaves as local;

    #[derive(local::Pooled)]
    #[pool(crate = local, align = 32)]
    struct Here(u8);

    assert_eq!(local::Pooled::pooled(Here(1)).0, 1);
    assert_eq!(<Here as local::Pooled>::pool().config().align(), 32);
}

#[test]
fn one_name_in_two_scopes_is_two_types() {
    fn first() -> (&'static str, u16) {
        #[derive(sheaves::Pooled)]
        #[pool(name = "first_scope")]
        struct Scoped(u16);

        (
            <Scoped as sheaves::Pooled>::pool().name(),
            sheaves::Pooled::pooled(Scoped(1)).0,
        )
    }

    fn second() -> (&'static str, u32) {
        #[derive(sheaves::Pooled)]
        #[pool(name = "second_scope")]
        struct Scoped(u32);

        (
            <Scoped as sheaves::Pooled>::pool().name(),
            sheaves::Pooled::pooled(Scoped(2)).0,
        )
    }

    assert_eq!(
        (first(), second()),
        (("first_scope", 1), ("second_scope", 2))
    );
}

#[test]
fn raw_identifiers_lose_their_mark_in_the_name_only() {
    use sheaves::Pooled;

    #[derive(Pooled)]
    #[expect(non_camel_case_types, reason = "the keyword is the point")]
    struct r#struct {
        r#type: u8,
    }

    assert_eq!(r#struct { r#type: 1 }.pooled().r#type, 1);
    assert_eq!(r#struct::pool().name(), "struct");
}

/// Declares a pooled type from fragments of every kind that a key takes.
macro_rules! pooled_type {
    ($ident:ident, $name:literal, $order:ident, $capacity:expr, $align:tt, $full:literal, $krate:path) => {
        #[derive(sheaves::Pooled)]
        #[pool(name = $name, order = $order, sheaf_capacity = $capacity, align = $align)]
        #[pool(barn = ($full, 2), crate = $krate)]
        struct $ident {
            field: u8,
        }
    };
    ($ident:ident) => {
        #[derive($crate::hygiene::vendored::renamed::Pooled)]
        #[pool(crate = $crate::hygiene::vendored::renamed, limit = 3)]
        struct $ident {
            field: u8,
        }
    };
}

#[test]
fn macros_by_example_can_declare_pooled_types() {
    use sheaves::Pooled;

    pooled_type!(Fragments, "fragments", max, 12, cache_line, 1, ::sheaves);
    pooled_type!(DollarCrate);

    let config = Fragments::pool().config();
    assert_eq!(
        (config.name(), config.order(), config.sheaf_capacity()),
        ("fragments", 9, 12)
    );
    assert_eq!(config.barn(), (1, 2));
    assert_eq!(Fragments { field: 1 }.pooled().field, 1);
    assert_eq!(DollarCrate::pool().config().limit(), Some(3));
    assert_eq!(DollarCrate { field: 2 }.pooled().field, 2);
}

mod private {
    #[derive(sheaves::Pooled)]
    struct Hidden(u8);

    pub(super) fn pooled() -> u8 {
        sheaves::Pooled::pooled(Hidden(1)).0
    }
}

#[test]
fn a_private_type_stays_private() {
    assert_eq!(private::pooled(), 1);
}

/// `Self` in the fields is the type, and methods may have the names that the generated code calls.
#[derive(sheaves::Pooled)]
#[pool(order = 1)]
struct Chain {
    next: Option<sheaves::PoolBox<Self>>,
}

impl Chain {
    fn pool(&self) -> usize {
        1 + self.next.as_ref().map_or(0, |next| next.pool())
    }

    fn builder() -> Self {
        Self { next: None }
    }
}

#[test]
fn methods_of_the_type_are_not_in_the_way() {
    use sheaves::Pooled;

    let chain = Chain {
        next: Some(Chain::builder().pooled()),
    }
    .pooled();
    assert_eq!(chain.pool(), 2);
    assert_eq!(<Chain as Pooled>::pool().config().order(), 1);
}

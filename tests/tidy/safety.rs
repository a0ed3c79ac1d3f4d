//! Proofs of unsafe code: `// SAFETY:` above every block and impl, `# Safety` in the docs of every
//! unsafe function and trait. Clippy asks for the same of what it can see; this also looks into
//! macro definitions, quoted code and private items.

use crate::spans::Spans;
use crate::tokens;
use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};
use proc_macro2::{Delimiter, TokenTree};
use syn::visit::{self, Visit};

fn proofs(source: &Source) -> Vec<Violation> {
    let spans = Spans::of(source);
    let mut violations = Vec::new();
    // What a derive quotes becomes code and is proved; what a test quotes is only compared.
    let quoted = !source.test;
    tokens::each_word(&source.tokens, "unsafe", quoted, &mut |word, after| {
        let place = word.span().start();
        let line = place.line;
        let Some(kind) = needs_proof(after) else {
            return;
        };
        let places = [line, spans.statement(place)];
        let text = match places.iter().find_map(|line| proof_above(&spans, *line)) {
            None => format!("no `// SAFETY:` comment directly above this unsafe {kind}"),
            Some("") => "an empty `// SAFETY:` comment".to_owned(),
            Some(_) => return,
        };
        violations.push(source.violation(line, text));
    });
    violations
}

/// What kind of claim `unsafe` makes, by what follows it, if it is one to prove on the spot.
fn needs_proof(after: &[TokenTree]) -> Option<&'static str> {
    match after {
        [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Brace => Some("block"),
        [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Parenthesis => {
            Some("attribute")
        }
        [TokenTree::Ident(word), ..] if word == "impl" => Some("impl"),
        [
            TokenTree::Ident(word),
            TokenTree::Literal(_),
            TokenTree::Group(_),
            ..,
        ]
        | [TokenTree::Ident(word), TokenTree::Group(_), ..]
            if word == "extern" =>
        {
            Some("extern block")
        }
        _ => None,
    }
}

/// The proof in the comments above, if there is one.
fn proof_above<'a>(spans: &Spans<'a>, line: usize) -> Option<&'a str> {
    let comments = spans.comments_above(line);
    comments
        .iter()
        .find_map(|(_, text)| text.strip_prefix("SAFETY:"))
        .map(str::trim)
}

fn obligations(source: &Source) -> Vec<Violation> {
    let mut finder = Obligations {
        source,
        violations: Vec::new(),
    };
    finder.visit_file(&source.syntax);
    finder.violations
}

struct Obligations<'a> {
    source: &'a Source,
    violations: Vec<Violation>,
}

impl Obligations<'_> {
    fn check(&mut self, token: Option<&syn::Token![unsafe]>, attributes: &[syn::Attribute]) {
        let Some(token) = token else { return };
        if !attributes.iter().any(has_safety_heading) {
            let line = token.span.start().line;
            let text = "the docs of this unsafe item have no `# Safety` section";
            self.violations.push(self.source.violation(line, text));
        }
    }
}

fn has_safety_heading(attribute: &syn::Attribute) -> bool {
    let syn::Meta::NameValue(pair) = &attribute.meta else {
        return false;
    };
    let syn::Expr::Lit(syn::ExprLit {
        lit: syn::Lit::Str(text),
        ..
    }) = &pair.value
    else {
        return false;
    };
    pair.path.is_ident("doc") && text.value().lines().any(|line| line.trim() == "# Safety")
}

impl<'ast> Visit<'ast> for Obligations<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check(item.sig.unsafety.as_ref(), &item.attrs);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.check(item.unsafety.as_ref(), &item.attrs);
        visit::visit_item_trait(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.check(item.sig.unsafety.as_ref(), &item.attrs);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Functions of a trait have their contract in the trait.
        let inherent = item.trait_.is_none();
        for function in &item.items {
            if let syn::ImplItem::Fn(function) = function {
                self.check(
                    function.sig.unsafety.as_ref().filter(|_| inherent),
                    &function.attrs,
                );
            }
        }
        visit::visit_item_impl(self, item);
    }
}

#[test]
fn unsafe_code_is_proved() {
    assert_none(tree::everything().iter().flat_map(proofs).collect());
}

#[test]
fn unsafe_items_state_their_obligations() {
    assert_none(tree::everything().iter().flat_map(obligations).collect());
}

#[test]
fn proved_code_passes() {
    let good = "fn f() {
        // SAFETY: `p` is valid (invariant 1),
        // and aligned.
        unsafe { p.read() };
        // SAFETY: the same.
        #[expect(lint, reason = \"why\")]
        let x =
            unsafe { g() };
        match x {
            // SAFETY: the arm.
            X => unsafe { g() },
        }
    }
    /// Docs.
    // SAFETY: nothing inside is shared.
    unsafe impl Send for X {}
    type F = unsafe fn(u8);
    /// # Safety
    unsafe fn h() {}";
    assert_lines(&proofs(&Source::snippet("src/x.rs", good)), &[]);
}

#[test]
fn unproved_code_is_told() {
    let bad = "fn f() {
        unsafe { p.read() };
        // SAFETY: one.
        let a = 1;
        let b = unsafe { g() };
        // SAFETY:
        unsafe { g() };
        /// SAFETY: a doc comment.
        let c = unsafe { g() };
        // Safety: spelt otherwise.
        m!(unsafe { g() });
    }
    // SAFETY: for the first.
    unsafe impl Send for X {}
    unsafe impl Sync for X {}
    unsafe extern \"C\" { fn x(); }
    #[unsafe(no_mangle)] fn y() {}";
    let found = proofs(&Source::snippet("src/x.rs", bad));
    assert_lines(&found, &[2, 5, 7, 9, 11, 15, 16, 17]);
}

#[test]
fn quoted_code_is_proved_where_it_becomes_code() {
    let quoted = "fn f() { quote! { unsafe impl X for Y {} } }";
    assert_lines(&proofs(&Source::snippet("src/x.rs", quoted)), &[1]);
    let test = format!("#![cfg(test)]\n{quoted}\nfn g() {{ unsafe {{ h() }} }}");
    assert_lines(&proofs(&Source::snippet("src/x.rs", &test)), &[3]);
}

#[test]
fn unstated_obligations_are_told() {
    let text = "/// # Safety
        /// x
        unsafe fn a() {}
        /// Safety: none.
        unsafe fn b() {}
        impl X { unsafe fn c() {} }
        impl Y for X { unsafe fn d() {} }
        unsafe trait Y { unsafe fn d(); }
        #[doc = \" # Safety\"] unsafe trait Z {}";
    assert_lines(
        &obligations(&Source::snippet("src/x.rs", text)),
        &[5, 6, 8, 8],
    );
}

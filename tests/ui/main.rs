//! Programs that `#[derive(Pooled)]` must refuse, each with the errors it must give, and for each a twin
//! that it must take. Where a text holds words of the compiler's own, they are those of the current stable
//! one.
#![forbid(unsafe_code)]
#![cfg(feature = "derive")]

#[test]
#[cfg_attr(miri, ignore = "starts the compiler")]
fn programs() {
    let programs = trybuild::TestCases::new();
    programs.compile_fail("tests/ui/fail/*.rs");
    programs.pass("tests/ui/pass/*.rs");
}

//! Finds out what the library is built for: which allocator traits there are, so that it can implement them, and
//! whether AddressSanitizer is to watch.
//!
//! `core_allocator` is set where core's trait can be had: on a compiler that has it without a gate, and with the
//! feature `nightly`. `any_allocator` is set where there is any of the traits. `sheaves_asan` is set under
//! AddressSanitizer.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let on = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let stable = autocfg::new().probe_path("core::alloc::Allocator");
    let core = stable || on("NIGHTLY");
    if core {
        println!("cargo:rustc-cfg=core_allocator");
    }
    if core && !stable {
        println!("cargo:rustc-cfg=gated_allocator");
    }
    if core || on("ALLOCATOR_API2_02") || on("ALLOCATOR_API2_04") {
        println!("cargo:rustc-cfg=any_allocator");
    }
    if has_address_sanitizer() {
        println!("cargo:rustc-cfg=sheaves_asan");
    }
}

/// Cargo tells of sanitizers where the compiler tells cargo; else the flags that it is called with do.
fn has_address_sanitizer() -> bool {
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let is_address = |list: &str| list.split(',').any(|name| name == "address");
    let told = env::var("CARGO_CFG_SANITIZE").is_ok_and(|list| is_address(&list));
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut lists = flags
        .split('\u{1f}')
        .filter_map(|flag| flag.split_once("sanitizer="));
    told || lists.any(|(_, list)| is_address(list))
}

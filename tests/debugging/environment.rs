//! Debugging from outside: `SHEAVES_DEBUG`, `SHEAVES_LEAKS`.

use std::process::Command;

use sheaves::{DebugFlags, Order, Pool, PoolBox};

/// Runs a test of this file in a process of its own, in which the body runs; its stderr.
fn child(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    const MARK: &str = "DEBUGGING_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        return None;
    }
    let path = format!("environment::{test}");
    let exe = std::env::current_exe().expect("tests have an executable");
    let output = Command::new(exe)
        .args([&path, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .envs(variables.iter().copied())
        .output()
        .expect("the executable can be run again");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{path}: {}\n{text}", output.status);
    Some(text)
}

fn flags<T>(pool: &Pool<T>) -> String {
    pool.config().debug().to_string()
}

#[test]
fn names_choose_the_flags() {
    let setting = "F;PU,io_*,tree;-,io_fast;ZQ,tree";
    let stderr = child(
        "names_choose_the_flags",
        &[("SHEAVES_DEBUG", setting)],
        || {
            assert_eq!(flags(&Pool::<u64>::new("other")), "F");
            assert_eq!(flags(&Pool::<u64>::new("io_kiocb")), "PU");
            assert_eq!(flags(&Pool::<u64>::new("tree")), "PU");
            let fast = Pool::<u64>::builder("io_fast").debug(DebugFlags::SANITY);
            assert_eq!(flags(&fast.build().unwrap()), "");
            let own = Pool::<u64>::builder("io_own").debug(DebugFlags::RED_ZONE);
            assert_eq!(flags(&own.build().unwrap()), "ZPU");
            assert_eq!(Pool::<u64>::new("io_none").config().sheaf_capacity(), 0);
        },
    );
    let Some(stderr) = stderr else { return };
    let told = stderr.matches("SHEAVES_DEBUG").count();
    assert_eq!(told, 1, "{stderr}");
    assert!(
        stderr.contains("`Q` is no debugging option") && stderr.contains("`ZQ,tree` is ignored"),
        "{stderr}"
    );
}

#[test]
fn a_glob_that_matches_nothing_is_told_at_the_end() {
    let test = "a_glob_that_matches_nothing_is_told_at_the_end";
    let stderr = child(test, &[("SHEAVES_DEBUG", "FZ,io_*,nonesuch")], || {
        (0..3).for_each(|_| drop(Pool::<u64>::new("io_kiocb")));
    });
    let Some(stderr) = stderr else { return };
    assert_eq!(stderr.matches("SHEAVES_DEBUG").count(), 1, "{stderr}");
    assert!(stderr.contains("`nonesuch` matched no pool"), "{stderr}");
}

#[test]
fn no_setting_keeps_a_pool_from_being_built() {
    let test = "no_setting_keeps_a_pool_from_being_built";
    let stderr = child(test, &[("SHEAVES_DEBUG", "FZPUTA")], || {
        let builder = Pool::<[u8; 65_380]>::builder("tight_fit").order(Order::new(0));
        assert_eq!(flags(&builder.build().unwrap()), "FPUTA");
    });
    assert!(stderr.is_none_or(|stderr| !stderr.contains("SHEAVES_DEBUG")));
}

#[test]
fn tracing_prints_allocations_and_frees() {
    let test = "tracing_prints_allocations_and_frees";
    let stderr = child(test, &[("SHEAVES_DEBUG", "T,traced")], || {
        drop(Pool::new("traced").alloc(1_u64));
        drop(Pool::new("silent").alloc(1_u64));
    });
    let Some(stderr) = stderr else { return };
    assert_eq!(
        stderr.matches("pool `traced`: alloc 0x").count(),
        1,
        "{stderr}"
    );
    assert_eq!(
        stderr.matches("pool `traced`: free 0x").count(),
        1,
        "{stderr}"
    );
    assert!(!stderr.contains("silent"));
}

#[test]
fn leaks_are_listed_at_the_end_of_the_process() {
    let variables = [("SHEAVES_LEAKS", "1"), ("SHEAVES_DEBUG", "U,forgotten")];
    let stderr = child(
        "leaks_are_listed_at_the_end_of_the_process",
        &variables,
        || {
            let pool = Pool::new("forgotten");
            (0..3_u64).for_each(|i| {
                PoolBox::leak(pool.alloc(i));
            });
            PoolBox::leak(Pool::new("plain").alloc(0_u8));
            drop(Pool::new("clean").alloc(0_u8));
        },
    );
    let Some(stderr) = stderr else { return };
    assert!(
        stderr.contains("pool `forgotten`: at the end of the process: 3 live objects\n  3 from "),
        "{stderr}"
    );
    assert!(stderr.contains("leaks_are_listed_at_the_end"), "{stderr}");
    assert!(
        stderr.contains(
            "pool `plain`: at the end of the process: 1 live object\n  1 from unknown: 0x"
        ),
        "{stderr}"
    );
    assert!(!stderr.contains("clean"));
}

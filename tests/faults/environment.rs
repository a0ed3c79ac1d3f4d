//! Faults from outside: `SHEAVES_FAULT`.

use std::process::Command;

use sheaves::{DebugFlags, Fault, Pool};

fn failures(pool: &Pool<u64>) -> usize {
    (0..12).filter(|i| pool.try_alloc(*i).is_err()).count()
}

#[test]
fn the_environment_sets_faults_by_name_and_by_flag() {
    const MARK: &str = "FAULTS_TEST_CHILD";
    let path = "environment::the_environment_sets_faults_by_name_and_by_flag";
    if std::env::var_os(MARK).is_some() {
        assert_eq!(failures(&Pool::new("io_kiocb")), 2);
        assert_eq!(failures(&Pool::new("other")), 0);
        let flagged = Pool::builder("flagged").debug(DebugFlags::FAULTS);
        assert_eq!(failures(&flagged.build().unwrap()), 4);
        let own = Pool::builder("io_own").fault(Fault::every(1).times(5));
        assert_eq!(
            failures(&own.build().unwrap()),
            5,
            "a fault in the code counts"
        );
        return;
    }
    let exe = std::env::current_exe().expect("tests have an executable");
    let output = Command::new(exe)
        .args([path, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        // A thread that moves to another node allocates where it had not to.
        .env("SHEAVES_NODES", "1")
        .env(
            "SHEAVES_FAULT",
            "every=3;every=1 times=2,io_*;never=1,x;nth=1,nonesuch",
        )
        .output()
        .expect("the executable can be run again");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stderr}", output.status);
    assert_eq!(stderr.matches("SHEAVES_FAULT").count(), 2, "{stderr}");
    assert!(stderr.contains("`never=1` is no fault"), "{stderr}");
    assert!(stderr.contains("`nonesuch` matched no pool"), "{stderr}");
}

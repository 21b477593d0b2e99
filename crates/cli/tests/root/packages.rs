//! The Debian package in a fresh Debian root, by the commands of docs/install.md
//! (`scripts/dist/try-packages.sh`).
//!
//! With the binary of the tests, which is not linked statically; `make dist-try` does the same with the one
//! that is handed out, and tries the image.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flashweir_testkit::{Process, require_program, skip};

/// Unpacking a root and packing two packages take most of it, on a busy machine.
const WITHIN: Duration = Duration::from_mins(5);

#[test]
fn the_page_about_installation_holds_in_a_fresh_debian_root() {
    let test = "the package in a fresh Debian root";
    let tools =
        [require_program("unshare", test), require_program("ip", test), require_program("curl", test)];
    if tools.iter().any(Option::is_none) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip(test, "it takes root");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_flashweir"));
    let tools = binary.ancestors().nth(2).expect("a target directory").join("tools");
    let (nfpm, archive) = (tools.join("bin/nfpm"), tools.join("debian-root.tar"));
    for (path, what) in [
        (&nfpm, "nfpm is not installed: `make nfpm` needs Go and its module proxy"),
        (&archive, "there is no Debian root: `make debian-root` needs root and mmdebstrap"),
    ] {
        if !path.exists() {
            return skip(test, what);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts/dist/try-packages.sh");
    let arguments: [PathBuf; 3] = [archive, nfpm, binary.to_owned()];
    let finished = Process::run(&script, &root, WITHIN, arguments);
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    assert!(
        finished.stdout.contains("every command of docs/install.md did what it says"),
        "{}",
        finished.stdout
    );
}

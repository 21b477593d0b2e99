//! Compiles the programs that run in the kernel, when the feature `bpf` asks for them.
//!
//! Clang is called as it stands: what libbpf-cargo would add (generated skeletons) costs seventy more crates
//! to build.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "bpf";
const OBJECTS: [&str; 4] = ["gate", "observe", "link", "bench"];
const FLAGS: [&str; 11] = [
    "-target",
    "bpf",
    // Bounds checks on 32-bit registers, atomics: Linux 5.12.
    "-mcpu=v3",
    "-O2",
    // Types for the maps (BTF) come from debug information.
    "-g",
    // Names of sources without the folder of this machine, so that every machine makes the same bytes.
    "-fdebug-compilation-dir=.",
    "-Wall",
    "-Wextra",
    "-Werror",
    // Headers are read as words of every size.
    "-fno-strict-aliasing",
    "-c",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed={SOURCES}");
    let target = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where to write"));
    for object in OBJECTS {
        let source = Path::new(SOURCES).join(format!("{object}.bpf.c"));
        compile(&source, &target.join(format!("{object}.o")));
    }
}

fn compile(source: &Path, object: &Path) {
    let architecture = std::env::var_os("CARGO_CFG_TARGET_ARCH").expect("cargo says for what");
    let output = Command::new("clang")
        .args(FLAGS)
        // Where Debian keeps <asm/types.h>; for the target `bpf` clang does not look there.
        .arg(format!("-idirafter/usr/include/{}-linux-gnu", architecture.display()))
        .arg(source)
        .arg("-o")
        .arg(object)
        .output();
    let problem = match output {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("clang does not start: {error}"),
    };
    // One line each: what cargo shows of a build that failed, without the backtrace of a panic.
    println!(
        "cargo::error=the feature `bpf` of flashweir-kernel compiles {} with clang and the headers of libbpf-dev \
         (Debian: clang libbpf-dev libelf-dev zlib1g-dev pkg-config); build without the feature where they are missing",
        source.display()
    );
    for line in problem.lines() {
        println!("cargo::error={line}");
    }
}

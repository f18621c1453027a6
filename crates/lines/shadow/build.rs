//! Has a crate's facade be the machine that counts lines.

fn main() {
    println!("cargo::rustc-cfg=corelay_lines");
    // The features of what is compiled here, which is compiled without them.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"metrics\", \"serde\", \"tracing\"))");
    println!("cargo::rerun-if-changed=../build.rs");
}

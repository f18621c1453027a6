//! Gives the shared library its name: programs ask for it by the interface they were built
//! against. Before 1.0 a minor version may change it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}"));
    let (Ok(major), Ok(minor)) = (version("MAJOR"), version("MINOR")) else {
        panic!("cargo says which version it builds");
    };
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcorelay.so.{major}.{minor}");
    }
}

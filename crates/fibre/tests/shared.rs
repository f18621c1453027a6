//! The runtime in a shared library: see `examples/shared.rs`.

#![cfg(unix)]

use std::ffi::{CStr, CString};
use std::path::PathBuf;

fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    profile.join(format!("examples/{prefix}shared{suffix}"))
}

/// `cargo test -p corelay-fibre` has built it; a test that is run alone finds one that was built before,
/// or says so.
#[test]
#[cfg_attr(
    any(corelay_tsan, corelay_asan),
    ignore = "a shared library cannot have the sanitizer of who loads it"
)]
#[cfg_attr(
    corelay_emulated,
    ignore = "an emulator keeps memory and processes otherwise"
)]
fn fibres_migrate_in_a_shared_library() {
    let path = library();
    let shown = path.display();
    assert!(
        path.exists(),
        "{shown} is made by `cargo build -p corelay-fibre --example shared`"
    );
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a name; the library's own constructors are Rust's.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() {
        // SAFETY: no duties.
        let why = unsafe { libc::dlerror() };
        // SAFETY: behind a failure it is a text.
        let why = unsafe { CStr::from_ptr(why) };
        panic!("{}", why.to_string_lossy());
    }
    // SAFETY: a handle that is open.
    let symbol = unsafe { libc::dlsym(handle, c"corelay_fibre_rings".as_ptr()) };
    assert!(!symbol.is_null());
    // SAFETY: the function has this signature.
    let rings = unsafe {
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(usize, usize) -> usize>(symbol)
    };
    assert_eq!(rings(100, 200), 20_000);
}

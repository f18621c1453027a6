//! A use after free on purpose: AddressSanitizer must report it.

#[test]
fn freed() {
    let word = Box::into_raw(Box::new(7_u64));
    // SAFETY: the pointer came from a box and is freed once.
    drop(unsafe { Box::from_raw(word) });
    // SAFETY: none; this is the bug that must be found.
    let stale = unsafe { word.read_volatile() };
    println!("{stale}");
}

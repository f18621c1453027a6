//! What a record in the ring begins with: which kind of request, on which object, in one
//! word. Small requests are what the ring is for: with two words there, half as many would
//! travel in a line.

use super::jump;
use super::request::Vtable;
use crate::object::Header;

/// The first word of a record.
///
/// ```text
/// 63                          22 21                   0
/// +-----------------------------+----------------------+
/// | address of the object / 64  | kind, a signed number |
/// +-----------------------------+----------------------+
/// ```
/// Objects are aligned to 64 bytes and lie below 2^48. The *kind* is the distance of the
/// request's vtable from [`jump::VTABLE`], in vtables of 64 bytes: it reaches 128 MiB to
/// either side, many times what constants of a program take. Where an address does not fit
/// (a tagged pointer, a program in parts far from each other) there is no label, and the
/// request takes the way of lone calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u64);

const KIND_BITS: u32 = 22;
const KIND: u64 = (1 << KIND_BITS) - 1;
const ADDRESS_BITS: u32 = 48;
/// Both are aligned to it.
const ALIGN_BITS: u32 = 6;

const _: () = assert!(align_of::<Vtable>() == 1 << ALIGN_BITS);
const _: () = assert!(ADDRESS_BITS - ALIGN_BITS + KIND_BITS == 64);

impl Label {
    /// A jump into larger rings; it concerns no object.
    pub(crate) const JUMP: Self = Self(0);

    /// Stands in place of the label of a request that faulted. No object lies there.
    pub(crate) const FAULTED: Self = Self(u64::MAX);

    /// `None` where one of the two does not fit.
    #[inline(always)]
    pub(crate) fn new(vtable: &'static Vtable, object: *mut Header) -> Option<Self> {
        let kind = kind_of((&raw const *vtable).expose_provenance(), origin());
        Some(Self(pack(kind?, object.expose_provenance() as u64)?))
    }

    #[inline(always)]
    pub(crate) fn object(self) -> *mut Header {
        std::ptr::with_exposed_provenance_mut(
            ((self.0 & !KIND) >> (KIND_BITS - ALIGN_BITS)) as usize,
        )
    }

    /// True where the two are requests of one type.
    #[inline(always)]
    pub(crate) fn is_of_kind(self, other: Self) -> bool {
        (self.0 ^ other.0) & KIND == 0
    }

    /// # Safety
    /// From [`new`](Self::new), or [`JUMP`](Self::JUMP).
    #[inline(always)]
    pub(crate) unsafe fn vtable(self) -> &'static Vtable {
        let distance =
            ((self.0 << (64 - KIND_BITS)) as i64 >> (64 - KIND_BITS - ALIGN_BITS)) as isize;
        let vtable =
            std::ptr::with_exposed_provenance::<Vtable>(origin().wrapping_add_signed(distance));
        // SAFETY: the vtable that `new` was given, or the origin itself.
        unsafe { &*vtable }
    }
}

/// Kinds are counted from here, so that a jump is a label of zero.
#[inline(always)]
fn origin() -> usize {
    (&raw const jump::VTABLE).expose_provenance()
}

/// The number of the vtable at `address`, where it fits.
#[inline(always)]
fn kind_of(address: usize, origin: usize) -> Option<u64> {
    let kind = (address.wrapping_sub(origin) as isize as i64) >> ALIGN_BITS;
    let limit = 1 << (KIND_BITS - 1);
    (-limit <= kind && kind < limit).then_some(kind as u64 & KIND)
}

#[inline(always)]
fn pack(kind: u64, address: u64) -> Option<u64> {
    (address >> ADDRESS_BITS == 0).then_some(address << (KIND_BITS - ALIGN_BITS) | kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::request::Then;
    use proptest::prelude::*;

    fn distance_of(label: u64) -> i64 {
        (label << (64 - KIND_BITS)) as i64 >> (64 - KIND_BITS)
    }

    proptest! {
        #[test]
        fn what_fits_comes_back(kind in -(1i64 << 21)..1 << 21, object in 0u64..1 << 42) {
            let origin = 0x5555_0000_0040usize;
            let address = origin.wrapping_add_signed((kind * 64) as isize);
            let packed = pack(kind_of(address, origin).expect("near"), object * 64).expect("low");
            prop_assert_eq!(distance_of(packed), kind);
            prop_assert_eq!(Label(packed).object().addr() as u64, object * 64);
        }

        #[test]
        fn what_does_not_fit_is_refused(far in (1u64 << 21)..1 << 40, high in (1u64 << 48)..) {
            prop_assert_eq!(kind_of((far * 64) as usize, 0), None);
            prop_assert_eq!(kind_of(0, ((far + 1) * 64) as usize), None);
            prop_assert_eq!(pack(0, high), None);
        }
    }

    #[test]
    fn a_label_leads_to_its_vtable() {
        let vtable = Then::<u64, fn(&mut u64) -> u8, u8>::VTABLE;
        let object = std::ptr::without_provenance_mut(0x7fff_ffff_ffc0);
        let label = Label::new(vtable, object).expect("near");
        // SAFETY: just made.
        assert!(std::ptr::eq(unsafe { label.vtable() }, vtable));
        assert_eq!(label.object(), object);
        // SAFETY: a jump's label.
        assert!(std::ptr::eq(unsafe { Label::JUMP.vtable() }, &jump::VTABLE));
        assert!(Label::JUMP.object().is_null());
        assert!(!label.is_of_kind(Label::JUMP) && label != Label::FAULTED);
    }
}

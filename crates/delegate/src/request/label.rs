//! What a record in the ring begins with: which kind of request, on which object, in one
//! word. Small requests are what the ring is for: with two words there, half as many would
//! travel in a line.

use super::{Vtable, ring_growth};
use crate::object::Header;

/// The first word of a record.
///
/// ```text
/// 63         48 47                                     6 5         0
/// +------------+----------------------------------------+-----------+
/// | kind, low  | address of the object, but for 6 zeros | kind, high |
/// +------------+----------------------------------------+-----------+
/// ```
/// Objects are aligned to 64 bytes and lie below 2^48. The *kind* is the distance of the
/// request's vtable from [`ring_growth::VTABLE`], in vtables of 64 bytes: it reaches 128 MiB to
/// either side, many times what constants of a program take. It lies around the address, so
/// that a rotation makes the label and a mask takes the address out. Where an address does not
/// fit (a tagged pointer, a program in parts far from each other) there is no label, and the
/// request takes the way of mail calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u64);

const KIND_BITS: u32 = 22;
const ADDRESS_BITS: u32 = 48;
/// Both are aligned to it.
const ALIGN_BITS: u32 = 6;
/// Where an object's address is not zero.
const OBJECT: u64 = (1 << ADDRESS_BITS) - (1 << ALIGN_BITS);
/// Vtables lie within so many bytes of the [`origin`].
const REACH: usize = 1 << (KIND_BITS + ALIGN_BITS);

const _: () = assert!(align_of::<Vtable>() == 1 << ALIGN_BITS);
const _: () = assert!(ADDRESS_BITS - ALIGN_BITS + KIND_BITS == 64);

impl Label {
    /// A growth into larger rings; it concerns no object.
    pub(crate) const RING_GROWTH: Self = Self(kind(REACH / 2));

    /// Stands in place of the label of a request that faulted. No object lies there.
    pub(crate) const FAULTED: Self = Self(u64::MAX);

    /// `None` where one of the two does not fit.
    #[inline(always)]
    pub(crate) fn new(vtable: &'static Vtable, object: *mut Header) -> Option<Self> {
        if !fits(object) {
            return None;
        }
        Self::of_fitting(vtable, object)
    }

    /// As [`new`](Self::new), for an object that [fits](fits).
    #[inline(always)]
    pub(crate) fn of_fitting(vtable: &'static Vtable, object: *mut Header) -> Option<Self> {
        debug_assert!(fits(object));
        let kind = kind_of((&raw const *vtable).expose_provenance())?;
        Some(Self(object.expose_provenance() as u64 | kind))
    }

    #[inline(always)]
    pub(crate) fn object(self) -> *mut Header {
        std::ptr::with_exposed_provenance_mut((self.0 & OBJECT) as usize)
    }

    /// True where the two are requests of one type.
    #[inline(always)]
    pub(crate) fn is_of_kind(self, other: Self) -> bool {
        (self.0 ^ other.0) & !OBJECT == 0
    }

    /// # Safety
    /// From [`new`](Self::new), or [`JUMP`](Self::RING_GROWTH).
    #[inline(always)]
    pub(crate) unsafe fn vtable(self) -> &'static Vtable {
        let vtable = std::ptr::with_exposed_provenance::<Vtable>(
            origin().wrapping_add(distance(self.0 & !OBJECT)),
        );
        // SAFETY: the vtable that `new` was given, or that of jumps.
        unsafe { &*vtable }
    }
}

/// True where the address of an object fits a label.
#[inline(always)]
pub(crate) fn fits(object: *mut Header) -> bool {
    object.addr() as u64 & !OBJECT == 0
}

/// Kinds are counted from here, half of them up to that of a growth.
#[inline(always)]
fn origin() -> usize {
    let origin = (&raw const ring_growth::VTABLE).wrapping_byte_sub(REACH / 2);
    origin.expose_provenance()
}

/// The number of the vtable at `address`, where it is near.
#[inline(always)]
fn kind_of(address: usize) -> Option<u64> {
    let distance = address.wrapping_sub(origin());
    (distance < REACH).then(|| kind(distance))
}

/// The number of the vtable at that distance from the origin, where labels have it.
#[inline(always)]
const fn kind(distance: usize) -> u64 {
    (distance as u64).rotate_left(ADDRESS_BITS - ALIGN_BITS)
}

/// The distance of that [`kind`].
#[inline(always)]
const fn distance(kind: u64) -> usize {
    kind.rotate_right(ADDRESS_BITS - ALIGN_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ApplyRecord;
    use proptest::prelude::*;

    fn object(address: u64) -> *mut Header {
        std::ptr::without_provenance_mut(address as usize)
    }

    proptest! {
        #[test]
        fn what_fits_comes_back(number in 0usize..1 << 22, address in 0u64..1 << 42) {
            let object = object(address * 64);
            prop_assert!(fits(object));
            let label = Label(object.addr() as u64 | kind(number * 64));
            prop_assert_eq!(label.object(), object);
            prop_assert_eq!(distance(label.0 & !OBJECT), number * 64);
            prop_assert_eq!(label.is_of_kind(Label(kind(number * 64))), true);
            prop_assert_eq!(label.is_of_kind(Label::RING_GROWTH), number == 1 << 21);
        }

        #[test]
        fn what_does_not_fit_is_refused(high in (1u64 << 48)..) {
            prop_assert!(!fits(object(high & !63)));
        }
    }

    #[test]
    fn a_label_leads_to_its_vtable() {
        let vtable = ApplyRecord::<u64, fn(&mut u64) -> u8, u8>::VTABLE;
        let object = object(0x7fff_ffff_ffc0);
        let label = Label::new(vtable, object).expect("near");
        // SAFETY: just made.
        assert!(std::ptr::eq(unsafe { label.vtable() }, vtable));
        assert_eq!(label.object(), object);
        // SAFETY: a growth's label.
        let growth = unsafe { Label::RING_GROWTH.vtable() };
        assert!(std::ptr::eq(growth, &ring_growth::VTABLE));
        assert!(Label::RING_GROWTH.object().is_null());
        assert!(!label.is_of_kind(Label::RING_GROWTH) && label != Label::FAULTED);
    }

    #[test]
    fn a_vtable_far_away_has_no_label() {
        let at = |distance| kind_of(origin().wrapping_add(distance));
        assert!(at(0).is_some() && at(REACH - 64).is_some());
        assert!(at(REACH).is_none() && at(0usize.wrapping_sub(64)).is_none());
    }
}

//! Detecting offsets that move.
//!
//! Some hosts move a virtual CPU to a core whose counter has another offset, while a program runs.
//! A calibration therefore looks several times, and compares. A look bounds the offset δ of a pair
//! from both sides, since noise only makes a bound wider:
//!
//! ```text
//!              −b                f         b: bound of j → i      f: bound of i → j
//!   ────────────├────── δ ───────┤───▶     f + b: there and back, whatever δ is
//! ```
//! * If no δ fits all looks, the offset has moved for certain, by at least the gap between them.
//! * If two looks took equally long there and back (to an eighth), and their middles are further
//!   apart than an eighth of that, it has moved. Noise of one look moves its middle by half of what
//!   it adds to the way, so by a sixteenth. Noise of two looks in opposite directions may be
//!   mistaken for a movement: then the boundary gets wider than necessary.
//!
//! If a pair has moved, its *widest* look counts, and it may move as far again.

use super::Offsets;

/// The offset of a pair of CPUs that moved while it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Movement {
    /// The CPU of the pair with the smaller number.
    pub from: usize,
    /// The CPU of the pair with the greater number.
    pub to: usize,
    /// How far the offset moved, in ticks: at least so far if `certain`.
    pub ticks: u64,
    /// Whether the movement is proved: no one offset fits all looks. If false, noise of two looks
    /// in opposite directions may have been mistaken for a movement.
    pub certain: bool,
}

/// Merges all looks into one, and finds the pairs that moved between them.
pub(super) fn merge(looks: &[Offsets], step: u64) -> (Offsets, Vec<Movement>) {
    let mut all = Offsets::unknown(looks.first().map_or(&[], |look| look.cpus()));
    let mut moved = Vec::new();
    let cpus = all.cpus().to_vec();
    for (at, &i) in cpus.iter().enumerate() {
        for &j in &cpus[at + 1..] {
            let bounds = |look: &Offsets| Some((look.get(i, j)?, look.get(j, i)?));
            let bounds: Vec<(i64, i64)> = looks.iter().filter_map(bounds).collect();
            let movement = of_pair(&bounds, step);
            for (from, to, ticks) in bounds
                .iter()
                .flat_map(|&(there, back)| [(i, j, there), (j, i, back)])
            {
                match movement {
                    Some(_) => all.raise(from, to, ticks),
                    None => all.lower(from, to, ticks),
                }
            }
            moved.extend(movement.map(|(ticks, certain)| Movement {
                from: i,
                to: j,
                ticks,
                certain,
            }));
        }
    }
    (all, moved)
}

/// Finds how far a pair's offset moved between its looks, in ticks, and whether that is certain.
/// Returns `None` if it did not move. Each of `bounds` is one look: there, and back.
fn of_pair(bounds: &[(i64, i64)], step: u64) -> Option<(u64, bool)> {
    let step = step.cast_signed();
    let least = bounds.iter().map(|&(there, _)| there).min()?;
    let most = bounds.iter().map(|&(_, back)| -back).max()?;
    // Each bound may be a step less at some moments than at others.
    let gap = most - least - 2 * step;
    if gap > 0 {
        return Some((gap.cast_unsigned(), true));
    }
    let way = bounds.iter().map(|&(there, back)| there + back).min()?;
    let middles = bounds
        .iter()
        .filter(|&&(there, back)| there + back <= way + way / 8)
        .map(|&(there, back)| (there - back) / 2);
    let shift = middles.clone().max()? - middles.min()?;
    let margin = (way / 8).max(2 * step);
    (shift > margin).then_some((shift.cast_unsigned(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 10;

    /// Looks at CPUs 3 and 7. The counter of CPU 7 is ahead by `offset`; the way is `way` in each
    /// direction, plus some noise.
    fn looks(of: &[(i64, i64, i64)]) -> Vec<Offsets> {
        let look = |&(offset, way, noise): &(i64, i64, i64)| {
            let mut look = Offsets::unknown(&[3, 7]);
            look.lower(3, 7, way + offset + noise);
            look.lower(7, 3, way - offset);
            look
        };
        of.iter().map(look).collect()
    }

    #[test]
    fn an_unmoved_offset_is_bounded_by_its_best_look() {
        let (all, moved) = merge(
            &looks(&[(20, 100, 0), (20, 100, 12), (20, 400, 60), (20, 104, 0)]),
            STEP,
        );
        assert_eq!(moved, []);
        assert_eq!((all.get(3, 7), all.get(7, 3)), (Some(120), Some(80)));
    }

    #[test]
    fn a_shift_at_one_way_is_a_movement_and_its_widest_look_counts() {
        let (all, moved) = merge(&looks(&[(0, 100, 0), (60, 100, 5), (0, 100, 3)]), STEP);
        assert_eq!(
            (moved[0].from, moved[0].to, moved[0].certain),
            (3, 7, false)
        );
        assert!((60..70).contains(&moved[0].ticks), "{moved:?}");
        assert_eq!((all.get(3, 7), all.get(7, 3)), (Some(165), Some(100)));
    }

    #[test]
    fn looks_without_a_common_offset_are_a_certain_movement() {
        // However much the ways differ.
        let (all, moved) = merge(&looks(&[(-400, 100, 0), (900, 500, 0)]), STEP);
        let [moved] = moved[..] else {
            panic!("{moved:?}")
        };
        assert!(moved.certain && moved.ticks == 700 - 20, "{moved:?}");
        assert_eq!((all.get(3, 7), all.get(7, 3)), (Some(1_400), Some(500)));
    }

    #[test]
    fn noise_of_a_look_is_no_movement() {
        // Whatever the noise adds, to either side or both, of pairs near and far.
        for way in [100, 1_000] {
            for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))) {
                let mut looks = looks(&[(30, way, 0), (30, way, a * way / 20), (30, way, 2)]);
                looks[1].raise(7, 3, way - 30 + b * way / 20);
                let (_, moved) = merge(&looks, STEP);
                assert_eq!(moved, [], "{way} {a} {b}");
            }
        }
    }

    #[test]
    fn one_look_detects_no_movement() {
        assert_eq!(merge(&looks(&[(5_000, 10, 0)]), STEP).1, []);
    }
}

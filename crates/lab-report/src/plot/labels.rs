//! Labels at line ends that do not overlap. Each stays as near to its line as the others allow.
//!
//! This is isotonic regression by pooling adjacent violators (Ayer et al., 1955). Labels are in
//! the order of their lines. Those that are too close form a block at the mean of the places that
//! its members want, and blocks that meet are merged. The result moves labels least in the sum of
//! squares.

/// Places labels of `height` between `top` and `bottom`, given the middle that each wants.
/// Returns the middles in the order of `wanted`. If they do not all fit, they are spread evenly
/// and overlap, so a picture must be high enough for its labels.
pub(super) fn spread(wanted: &[f64], height: f64, top: f64, bottom: f64) -> Vec<f64> {
    let n = wanted.len();
    if n == 0 {
        return Vec::new();
    }
    let (low, high) = (top + height / 2.0, bottom - height / 2.0);
    if n > 1 && (n - 1) as f64 * height >= high - low {
        let step = (high - low) / (n - 1) as f64;
        return in_order(wanted, |i| low + step * i as f64);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // In coordinates y − i·height "no overlap" means "never decreasing".
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (i, &who) in order.iter().enumerate() {
        let mut block = (wanted[who].clamp(low, high) - i as f64 * height, 1);
        while let Some(&(sum, count)) = blocks.last() {
            if sum / count as f64 <= block.0 / block.1 as f64 {
                break;
            }
            block = (block.0 + sum, block.1 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    let flat = |&(sum, count): &(f64, usize)| {
        let mean = (sum / count as f64).clamp(low, high - (n - 1) as f64 * height);
        std::iter::repeat_n(mean, count)
    };
    let mut placed = vec![0.0; n];
    for (i, (who, mean)) in order.iter().zip(blocks.iter().flat_map(flat)).enumerate() {
        placed[*who] = mean + i as f64 * height;
    }
    placed
}

/// Returns `place(rank)` for each label, ranked by the place that it wants.
fn in_order(wanted: &[f64], place: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = vec![0.0; wanted.len()];
    for (rank, who) in order.into_iter().enumerate() {
        placed[who] = place(rank);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &[f64], height: f64, top: f64, bottom: f64) -> Vec<f64> {
        let placed = spread(wanted, height, top, bottom);
        let mut pairs: Vec<_> = wanted.iter().zip(&placed).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(b.0).then(a.1.total_cmp(b.1)));
        for two in pairs.windows(2) {
            assert!(
                two[1].1 - two[0].1 >= height - 1e-9,
                "overlap in {placed:?}"
            );
        }
        for p in &placed {
            assert!((top + height / 2.0 - 1e-9..=bottom - height / 2.0 + 1e-9).contains(p));
        }
        placed
    }

    #[test]
    fn labels_with_room_stay_where_they_are() {
        assert_eq!(
            check(&[90.0, 20.0, 50.0], 10.0, 0.0, 100.0),
            [90.0, 20.0, 50.0]
        );
    }

    #[test]
    fn crowded_labels_share_the_displacement() {
        assert_eq!(check(&[50.0, 50.0], 10.0, 0.0, 100.0), [45.0, 55.0]);
        let placed = check(&[50.0, 52.0, 51.0, 90.0], 10.0, 0.0, 100.0);
        assert_eq!(placed, [41.0, 61.0, 51.0, 90.0]);
    }

    #[test]
    fn labels_stay_inside() {
        check(&[0.0, 1.0, 2.0, 3.0], 10.0, 0.0, 100.0);
        check(&[100.0, 99.0, 100.0, 100.0], 10.0, 0.0, 100.0);
        check(&[-50.0, 500.0], 10.0, 0.0, 100.0);
    }

    #[test]
    fn random_crowds_never_overlap() {
        let mut seed = 7u64;
        for n in 1..=10 {
            for _ in 0..200 {
                let wanted: Vec<f64> = (0..n)
                    .map(|_| {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                        (seed >> 33) as f64 / (1u64 << 31) as f64 * 100.0
                    })
                    .collect();
                check(&wanted, 9.9, 0.0, 100.0);
            }
        }
    }

    #[test]
    fn too_many_labels_are_spread_evenly() {
        assert_eq!(
            spread(&[3.0, 1.0, 2.0], 60.0, 0.0, 100.0),
            [70.0, 30.0, 50.0]
        );
        assert!(spread(&[], 10.0, 0.0, 1.0).is_empty());
    }
}

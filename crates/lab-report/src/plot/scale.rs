//! Axes: from values to places, and from values to short words.

/// An axis: the range of its values and their spacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// Equal steps for equal ratios. Values must be positive.
    Log {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
}

/// Ratio of largest to smallest value beyond which a linear axis would flatten the small ones.
const LOG_BEYOND: f64 = 20.0;

/// The most decades that have a tick each.
const DECADES: i32 = 10;

impl Scale {
    /// Makes a vertical axis for positive `values`: linear from zero if they are of similar size,
    /// else logarithmic.
    pub fn for_values(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for v in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            (low, high) = (low.min(v), high.max(v));
        }
        if high == 0.0 {
            Scale::Linear {
                low: 0.0,
                high: 1.0,
            }
        } else if high / low > LOG_BEYOND {
            Scale::Log {
                low: low / 1.25,
                high: high * 1.25,
            }
        } else {
            let step = nice_step(high / 4.0);
            Scale::Linear {
                low: 0.0,
                high: (high * 1.04 / step).ceil() * step,
            }
        }
    }

    /// Makes a horizontal axis from 1-based powers of two that spans `values`.
    pub fn powers_of_two(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for v in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            (low, high) = (low.min(v), high.max(v));
        }
        if high == 0.0 {
            return Scale::Log {
                low: 1.0,
                high: 2.0,
            };
        }
        Scale::Log {
            low,
            high: if high > low { high } else { low * 2.0 },
        }
    }

    /// Returns the place of `value`: 0 at the start, 1 at the end; `None` if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let at = match *self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } if value > 0.0 => (value / low).ln() / (high / low).ln(),
            Scale::Log { .. } => return None,
        };
        (at.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&at)).then(|| at.clamp(0.0, 1.0))
    }

    /// Returns the nearest place of any value: like [`place`](Self::place), but moved to the
    /// edge.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        let (Scale::Linear { low, high } | Scale::Log { low, high }) = *self;
        self.place(value.max(low).min(high)).unwrap_or(0.0)
    }

    /// Returns values worth a grid line, at most about ten.
    pub fn ticks(&self) -> Vec<f64> {
        match *self {
            Scale::Linear { low, high } => {
                let step = nice_step((high - low) / 5.0);
                let first = (low / step).ceil();
                (0..=((high - low) / step * (1.0 + 1e-9)).floor() as u32)
                    .map(|i| (first + f64::from(i)) * step)
                    .collect()
            }
            Scale::Log { low, high } => {
                let digits: &[f64] = if high / low < 3000.0 {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
                let step = ((last - first) / DECADES + 1) as usize;
                (first..=last)
                    .step_by(step)
                    .flat_map(|d| digits.iter().map(move |m| m * 10f64.powi(d)))
                    .filter(|v| (low..=high).contains(v))
                    .collect()
            }
        }
    }

    /// Returns the powers of two inside the axis, thinned to at most `most`.
    pub(crate) fn powers(&self, most: usize) -> Vec<f64> {
        let (Scale::Linear { low, high } | Scale::Log { low, high }) = *self;
        let (first, last) = (
            low.max(1.0).log2().ceil() as i32,
            high.max(1.0).log2().floor() as i32,
        );
        let octaves = (last - first).max(0) as usize;
        let step = [1, 2, 4, 5, 8, 10]
            .into_iter()
            .find(|s| octaves / s < most)
            .unwrap_or(16);
        (first..=last).step_by(step).map(|p| 2f64.powi(p)).collect()
    }
}

/// Returns the smallest of 1, 2, 2.5, 5 × 10^n that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|d| d * decade >= least * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * decade
}

/// Formats `value` with three significant digits: `597`, `42.1`, `0.0213`, `12,300`.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let mut decimals = (2 - magnitude).clamp(0, 9) as usize;
    // 9.996 rounds up to the next magnitude and then needs one digit less.
    let rounded: f64 = format!("{value:.decimals$}").parse().unwrap_or(value);
    if rounded.abs() >= 10f64.powi(magnitude + 1) {
        decimals = decimals.saturating_sub(1);
    }
    if magnitude >= 3 {
        grouped(value.round() as u64)
    } else {
        format!("{value:.decimals$}")
    }
}

/// Formats `value` without insignificant digits: `50`, `0.25`, `1,000`.
pub fn trimmed(value: f64) -> String {
    if value >= 1000.0 {
        return significant(value);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats `n` with a comma between groups of three digits.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats `n` for an axis, exact and short: `4 Ki` for 4,096.
pub fn short_count(n: f64) -> String {
    for (unit, name) in [
        ((1u64 << 30) as f64, "Gi"),
        ((1u64 << 20) as f64, "Mi"),
        (1024.0, "Ki"),
    ] {
        if n >= unit && (n / unit).fract() == 0.0 {
            return format!("{} {name}", n / unit);
        }
    }
    if n.fract() == 0.0 && n >= 0.0 {
        grouped(n as u64)
    } else {
        trimmed(n)
    }
}

/// Formats a size in bytes, short: `48 KiB`, `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    for (shift, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if n >= 1 << shift {
            let value = n as f64 / (1u64 << shift) as f64;
            let text = format!("{value:.1}");
            return format!("{} {name}", text.strip_suffix(".0").unwrap_or(&text));
        }
    }
    format!("{n} B")
}

/// Formats a probability, 0 to 1, as a short percentage.
pub fn percent(p: f64) -> String {
    // The space does not break, so the sign stays with its number.
    match p * 100.0 {
        p if p >= 99.95 => "100\u{a0}%".to_owned(),
        p if p >= 9.95 => format!("{p:.0}\u{a0}%"),
        p if p >= 0.095 => format!("{p:.1}\u{a0}%"),
        p if p >= 0.0095 => format!("{p:.2}\u{a0}%"),
        p if p > 0.0 => "<0.01\u{a0}%".to_owned(),
        _ => "0\u{a0}%".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_logarithmic_only_if_sizes_differ() {
        assert_eq!(
            Scale::for_values([3.0, 4.0, 9.0]),
            Scale::Linear {
                low: 0.0,
                high: 10.0
            }
        );
        assert!(matches!(
            Scale::for_values([0.02, 600.0]),
            Scale::Log { .. }
        ));
        assert_eq!(
            Scale::for_values([f64::NAN, 0.0, -1.0]),
            Scale::Linear {
                low: 0.0,
                high: 1.0
            }
        );
    }

    #[test]
    fn every_value_of_a_scale_has_a_place_and_ticks_lie_inside() {
        for values in [
            vec![1.0],
            vec![3.0, 50.0],
            vec![0.013, 790.0],
            vec![1e-9, 1e9],
        ] {
            let scale = Scale::for_values(values.clone());
            assert!(
                values.iter().all(|&v| scale.place(v).is_some()),
                "{scale:?}"
            );
            let ticks = scale.ticks();
            assert!((2..=12).contains(&ticks.len()), "{scale:?} {ticks:?}");
            assert!(
                ticks.iter().all(|&t| scale.place(t).is_some()),
                "{scale:?} {ticks:?}"
            );
        }
        assert_eq!(
            Scale::Log {
                low: 1.0,
                high: 8.0
            }
            .place(0.0),
            None
        );
        assert_eq!(
            Scale::Log {
                low: 1.0,
                high: 8.0
            }
            .place(9.0),
            None
        );
        assert_eq!(
            Scale::Log {
                low: 1.0,
                high: 8.0
            }
            .clamped(9.0),
            1.0
        );
        assert_eq!(
            Scale::Log {
                low: 1.0,
                high: 8.0
            }
            .clamped(0.0),
            0.0
        );
    }

    #[test]
    fn powers_are_thinned() {
        let scale = Scale::powers_of_two([1.0, (1u64 << 22) as f64]);
        assert!(scale.powers(7).len() <= 7);
        assert_eq!(
            Scale::powers_of_two([1.0, 8.0]).powers(7),
            [1.0, 2.0, 4.0, 8.0]
        );
        assert_eq!(
            Scale::powers_of_two([]),
            Scale::Log {
                low: 1.0,
                high: 2.0
            }
        );
    }

    #[test]
    fn numbers_read_well() {
        let cases = [
            (597.3, "597"),
            (42.06, "42.1"),
            (3.617, "3.62"),
            (0.02134, "0.0213"),
            (9.996, "10.0"),
            (99.96, "100"),
            (12_345.0, "12,345"),
            (0.0, "0"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
        assert_eq!(
            [50.0, 0.25, 0.001, 2000.0, 0.0].map(trimmed).join(" "),
            "50 0.25 0.001 2,000 0"
        );
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(grouped(999), "999");
        assert_eq!(short_count(4096.0), "4 Ki");
        assert_eq!(short_count(512.0), "512");
        assert_eq!(short_count(1_000_000.0), "1,000,000");
        assert_eq!(short_count(0.01), "0.01");
        assert_eq!(
            [1.0, 0.5, 0.0898, 0.0029, 1e-6, 0.0]
                .map(percent)
                .join(" ")
                .replace('\u{a0}', ""),
            "100% 50% 9.0% 0.3% <0.01% 0%"
        );
        assert_eq!(bytes(48 << 10), "48 KiB");
        assert_eq!(bytes(3 << 19), "1.5 MiB");
        assert_eq!(bytes(100), "100 B");
    }
}

//! Vectors of three numbers: points, directions and colours.
//!
//! They are computed by sums, products, quotients and square roots alone, in the order of the
//! source. IEEE 754 rounds each of these in one way, so every machine and every build traces the
//! same picture. Powers, sines and fused operations are left out: their last bits differ.

use std::ops::{Add, Mul, Sub};

/// A point, a direction, or a colour (red, green and blue from 0 to 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vector(pub(super) f64, pub(super) f64, pub(super) f64);

impl Vector {
    pub(super) const ZERO: Self = Self(0.0, 0.0, 0.0);

    pub(super) fn dot(self, other: Self) -> f64 {
        self.0 * other.0 + self.1 * other.1 + self.2 * other.2
    }

    pub(super) fn cross(self, other: Self) -> Self {
        Self(
            self.1 * other.2 - self.2 * other.1,
            self.2 * other.0 - self.0 * other.2,
            self.0 * other.1 - self.1 * other.0,
        )
    }

    /// The direction with length 1.
    pub(super) fn unit(self) -> Self {
        self * (1.0 / self.dot(self).sqrt())
    }

    /// The direction of a mirrored ray; `normal` has length 1.
    pub(super) fn mirrored(self, normal: Self) -> Self {
        self - normal * (2.0 * self.dot(normal))
    }

    /// The product of each component: a colour seen through a filter.
    pub(super) fn filtered(self, filter: Self) -> Self {
        Self(self.0 * filter.0, self.1 * filter.1, self.2 * filter.2)
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }
}

impl Sub for Vector {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1, self.2 - other.2)
    }
}

impl Mul<f64> for Vector {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self(self.0 * by, self.1 * by, self.2 * by)
    }
}

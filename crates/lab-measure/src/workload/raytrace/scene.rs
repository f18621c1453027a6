//! The scene: spheres on a chequered plane under two lights, and the camera before them.

use super::vector::Vector;

/// The look of a surface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surface {
    pub(super) colour: Vector,
    /// The share of the light that comes from the mirrored direction, 0 to 1.
    pub(super) mirror: f64,
    /// Brightness of the highlight, 0 to 1.
    pub(super) gloss: f64,
}

/// A sphere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sphere {
    pub(super) centre: Vector,
    pub(super) radius: f64,
    pub(super) surface: Surface,
}

/// A horizontal plane of squares with a side of 1, in two surfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plane {
    pub(super) height: f64,
    pub(super) surfaces: [Surface; 2],
}

/// A light that shines in all directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Light {
    pub(super) place: Vector,
    pub(super) colour: Vector,
}

/// Light that comes from everywhere.
pub(super) const AMBIENT: f64 = 0.12;
/// The sky at the horizon and at the zenith.
pub(super) const SKY: [Vector; 2] = [Vector(0.85, 0.9, 1.0), Vector(0.2, 0.4, 0.8)];

pub(super) const PLANE: Plane = Plane {
    height: 0.0,
    surfaces: [
        surface(Vector(0.9, 0.9, 0.85), 0.1, 0.0),
        surface(Vector(0.15, 0.2, 0.25), 0.3, 0.0),
    ],
};

pub(super) const LIGHTS: [Light; 2] = [
    Light {
        place: Vector(-6.0, 8.0, -5.0),
        colour: Vector(0.75, 0.7, 0.6),
    },
    Light {
        place: Vector(5.0, 5.0, -7.0),
        colour: Vector(0.25, 0.3, 0.4),
    },
];

/// Three large spheres, and a row of small ones before them.
pub(super) const SPHERES: [Sphere; 8] = [
    sphere(Vector(0.0, 1.3, 0.6), 1.3, Vector(0.9, 0.9, 0.95), 0.8),
    sphere(Vector(-2.4, 1.0, 0.0), 1.0, Vector(0.85, 0.2, 0.15), 0.25),
    sphere(Vector(2.4, 1.0, 0.2), 1.0, Vector(0.15, 0.35, 0.8), 0.35),
    sphere(Vector(-1.7, 0.4, -1.8), 0.4, Vector(0.95, 0.75, 0.2), 0.3),
    sphere(Vector(-0.6, 0.3, -1.9), 0.3, Vector(0.2, 0.7, 0.3), 0.15),
    sphere(Vector(0.3, 0.35, -2.2), 0.35, Vector(0.8, 0.8, 0.8), 0.7),
    sphere(Vector(1.2, 0.3, -1.7), 0.3, Vector(0.75, 0.3, 0.7), 0.2),
    sphere(Vector(2.0, 0.45, -1.6), 0.45, Vector(0.9, 0.5, 0.2), 0.0),
];

const fn surface(colour: Vector, mirror: f64, gloss: f64) -> Surface {
    Surface {
        colour,
        mirror,
        gloss,
    }
}

const fn sphere(centre: Vector, radius: f64, colour: Vector, mirror: f64) -> Sphere {
    Sphere {
        centre,
        radius,
        surface: surface(colour, mirror, 0.6),
    }
}

/// The camera: the rays through the pixels of a picture start here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Camera {
    width: f64,
    height: f64,
    ahead: Vector,
    right: Vector,
    up: Vector,
}

impl Camera {
    pub(super) const PLACE: Vector = Vector(0.4, 2.1, -6.5);
    const TARGET: Vector = Vector(0.0, 0.85, 0.0);
    /// Height of the picture, seen from a distance of 1.
    const VIEW: f64 = 0.8;

    /// The camera for a picture of `width` by `height` pixels.
    pub(super) fn new(width: usize, height: usize) -> Self {
        let ahead = (Self::TARGET - Self::PLACE).unit();
        let right = Vector(0.0, 1.0, 0.0).cross(ahead).unit();
        Self {
            width: width as f64,
            height: height as f64,
            ahead,
            right,
            up: ahead.cross(right),
        }
    }

    /// The direction of the ray through a pixel, counted from the top left.
    pub(super) fn direction(&self, x: usize, y: usize) -> Vector {
        let pixel = Self::VIEW / self.height;
        let across = (x as f64 + 0.5 - self.width / 2.0) * pixel;
        let down = (y as f64 + 0.5 - self.height / 2.0) * pixel;
        (self.ahead + self.right * across - self.up * down).unit()
    }
}

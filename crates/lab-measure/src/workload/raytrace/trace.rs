//! The ray tracer: the colour of a ray, by shadows, highlights and mirrors (Whitted, "An improved
//! illumination model for shaded display", 1980).

use super::scene::{AMBIENT, Camera, LIGHTS, PLANE, SKY, SPHERES, Surface};
use super::vector::Vector;

/// The numbers of rays that were cast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rays {
    /// All rays: from the camera, to the lights, and mirrored.
    pub(super) all: u64,
    /// Mirrored rays.
    pub(super) reflections: u64,
}

/// Distance within which a ray does not meet the surface that it leaves.
const NEAR: f64 = 1e-6;

/// A point where a ray meets a surface.
struct Hit {
    distance: f64,
    point: Vector,
    normal: Vector,
    surface: Surface,
}

/// The colour of a pixel as red, green and blue. A ray is mirrored at most `depth` times.
pub(super) fn pixel(camera: &Camera, x: usize, y: usize, depth: u32, rays: &mut Rays) -> [u8; 3] {
    let colour = colour(Camera::PLACE, camera.direction(x, y), depth, rays);
    // The root is a gamma of 2, as screens expect it within a few percent.
    let byte = |light: f64| (light.clamp(0.0, 1.0).sqrt() * 255.0 + 0.5) as u8;
    [byte(colour.0), byte(colour.1), byte(colour.2)]
}

/// The light that comes from `direction` to `from`.
fn colour(mut from: Vector, mut direction: Vector, depth: u32, rays: &mut Rays) -> Vector {
    let (mut colour, mut share) = (Vector::ZERO, 1.0);
    rays.all += 1;
    for left in (0..=depth).rev() {
        let Some(hit) = meet(from, direction) else {
            return colour + sky(direction) * share;
        };
        let own = lit(&hit, direction, rays);
        colour = colour + own * (share * (1.0 - hit.surface.mirror));
        share *= hit.surface.mirror;
        if share == 0.0 || left == 0 {
            break;
        }
        rays.all += 1;
        rays.reflections += 1;
        (from, direction) = (hit.point, direction.mirrored(hit.normal));
    }
    colour
}

fn sky(direction: Vector) -> Vector {
    let height = direction.1.clamp(0.0, 1.0);
    SKY[0] * (1.0 - height) + SKY[1] * height
}

/// The light that a surface sends back without mirroring: ambient, diffuse, and highlights.
fn lit(hit: &Hit, direction: Vector, rays: &mut Rays) -> Vector {
    let mut colour = hit.surface.colour * AMBIENT;
    for light in &LIGHTS {
        let way = light.place - hit.point;
        let distance = way.dot(way).sqrt();
        let way = way * (1.0 / distance);
        let facing = way.dot(hit.normal);
        if facing <= 0.0 {
            continue;
        }
        rays.all += 1;
        if is_blocked(hit.point, way, distance) {
            continue;
        }
        colour = colour + hit.surface.colour.filtered(light.colour) * facing;
        let gleam = direction.mirrored(hit.normal).dot(way).max(0.0);
        colour = colour + light.colour * (hit.surface.gloss * to_the_32nd(gleam));
    }
    colour
}

/// `x` to the power of 32.
fn to_the_32nd(x: f64) -> f64 {
    (0..5).fold(x, |x, _| x * x)
}

/// The nearest surface on a ray.
fn meet(from: Vector, direction: Vector) -> Option<Hit> {
    let mut nearest: Option<Hit> = plane(from, direction);
    for sphere in &SPHERES {
        let found = roots(from, direction, sphere.centre, sphere.radius);
        let Some(distance) = found.filter(|&at| nearest.as_ref().is_none_or(|n| at < n.distance))
        else {
            continue;
        };
        let point = from + direction * distance;
        nearest = Some(Hit {
            distance,
            point,
            normal: (point - sphere.centre) * (1.0 / sphere.radius),
            surface: sphere.surface,
        });
    }
    nearest
}

/// Whether a sphere stands between a point and a light. The plane is below all lights.
fn is_blocked(from: Vector, way: Vector, distance: f64) -> bool {
    let meets = |at: Option<f64>| at.is_some_and(|at| at < distance);
    let mut spheres = SPHERES.iter();
    spheres.any(|sphere| meets(roots(from, way, sphere.centre, sphere.radius)))
}

fn plane(from: Vector, direction: Vector) -> Option<Hit> {
    if direction.1 >= 0.0 {
        return None;
    }
    let distance = (PLANE.height - from.1) / direction.1;
    if distance <= NEAR {
        return None;
    }
    let point = from + direction * distance;
    let square = point.0.floor() + point.2.floor();
    let is_odd = square - 2.0 * (square / 2.0).floor() != 0.0;
    Some(Hit {
        distance,
        point,
        normal: Vector(0.0, 1.0, 0.0),
        surface: PLANE.surfaces[usize::from(is_odd)],
    })
}

/// The distance at which a ray first meets a sphere from outside or inside.
fn roots(from: Vector, direction: Vector, centre: Vector, radius: f64) -> Option<f64> {
    let away = from - centre;
    let half = away.dot(direction);
    let inside = half * half - (away.dot(away) - radius * radius);
    if inside < 0.0 {
        return None;
    }
    let root = inside.sqrt();
    [-half - root, -half + root]
        .into_iter()
        .find(|&distance| distance > NEAR)
}

//! Maximum product of spacings for laws with an unknown shift.
//!
//! The likelihood of a shifted law has no maximum: it grows without bound as the shift approaches the smallest value (B. M.
//! Hill 1963 for the lognormal law). The product of the spacings of the distribution function is bounded and its maximum is
//! consistent and as efficient as maximum likelihood is where that works (R. C. H. Cheng, N. A. K. Amin, J. R. Statist.
//! Soc. B 45, 1983; B. Ranneby 1984).

use crate::noise::cells::Cells;
use crate::noise::law::{Excess, Law, LawKind};

/// Logarithms of the distance from the shift to the smallest value, of the shape, and of the scale.
pub(super) type Place = [f64; 3];

/// Where the search may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    low: Place,
    high: Place,
    /// Smallest shift.
    lowest: f64,
}

impl Bounds {
    /// `lowest` is the smallest shift allowed, if any.
    pub(super) fn of(cells: &Cells, lowest: Option<f64>) -> Self {
        // Four ranges below the smallest value a shifted law is all but normal.
        const REACH: f64 = 4.0;
        let widest = REACH * cells.range();
        let most = lowest.map_or(widest, |lowest| (cells.lowest - lowest).min(widest));
        let high = libm::log(most.max(f64::MIN_POSITIVE));
        Self {
            low: [high - 60.0, libm::log(0.02), -700.0],
            high: [high, libm::log(1e5), 700.0],
            lowest: cells.lowest - most,
        }
    }

    fn clamp(&self, place: Place) -> Place {
        std::array::from_fn(|axis| place[axis].clamp(self.low[axis], self.high[axis]))
    }

    /// Whether the shift is as low as it may be.
    pub(super) fn holds_shift(&self, place: &Place) -> bool {
        place[0] >= self.high[0]
    }
}

/// What the search found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) value: f64,
    /// Information matrix of the three logarithms.
    pub(super) information: [[f64; 3]; 3],
}

/// The law at a place.
pub(super) fn law_at(kind: LawKind, cells: &Cells, bounds: &Bounds, place: &Place) -> Law {
    let [distance, shape, scale] = place.map(libm::exp);
    Law { kind, shift: (cells.lowest - distance).max(bounds.lowest), shape, scale }
}

/// The place of a law, brought between the bounds.
pub(super) fn place_of(law: &Law, cells: &Cells, bounds: &Bounds) -> Place {
    let distance = (cells.lowest - law.shift).max(f64::MIN_POSITIVE);
    bounds.clamp([distance, law.shape, law.scale].map(libm::log))
}

/// Searches from several shifts; the best two starts are followed to their maxima.
pub(super) fn fit(kind: LawKind, cells: &Cells, bounds: &Bounds) -> Found {
    let middle = cells.middle().max(f64::MIN_POSITIVE);
    let mut starts: Vec<(f64, Place)> = [1e-6, 1e-3, 0.03, 0.2, 1.0, 4.0, f64::INFINITY]
        .into_iter()
        .map(|share| {
            let distance = libm::log(share * middle).clamp(bounds.low[0], bounds.high[0]);
            let place = bounds.clamp(start(kind, cells, distance));
            (value(kind, cells, &place), place)
        })
        .collect();
    starts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (first, second) = (climb(kind, cells, bounds, starts[0].1), climb(kind, cells, bounds, starts[1].1));
    if second.value > first.value { second } else { first }
}

/// Shape and scale from moments of the logarithm, for a given shift.
fn start(kind: LawKind, cells: &Cells, distance: f64) -> Place {
    // SOURCE: Euler's constant and the standard deviation of a Gumbel variable, pi / sqrt 6.
    const EULER: f64 = 0.577_215_664_901_532_9;
    const GUMBEL: f64 = 1.282_549_830_161_864;
    let away = libm::exp(distance);
    let (mut count, mut sum, mut logs, mut squares) = (0.0, 0.0, 0.0, 0.0);
    for (edge, weight) in cells.points() {
        let log = libm::log(edge + away);
        count += weight;
        sum += weight * (edge + away);
        logs += weight * log;
        squares += weight * log * log;
    }
    let mean = logs / count;
    let deviation = (squares / count - mean * mean).max(1e-12).sqrt();
    let (shape, scale) = match kind {
        LawKind::Weibull => (GUMBEL / deviation, mean + EULER * deviation / GUMBEL),
        LawKind::Gamma => {
            // SOURCE: T. P. Minka, "Estimating a Gamma Distribution", 2002, after eq. 11.
            let gap = (libm::log(sum / count) - mean).max(1e-9);
            let shape = (3.0 - gap + ((gap - 3.0).powi(2) + 24.0 * gap).sqrt()) / (12.0 * gap);
            (shape, libm::log(sum / count / shape))
        }
        _ => (deviation, mean),
    };
    [distance, libm::log(shape), scale]
}

/// Sum of the logarithms of the spacings.
fn value(kind: LawKind, cells: &Cells, place: &Place) -> f64 {
    let excess = Excess { kind, shape: libm::exp(place[1]), scale: libm::exp(place[2]) };
    let away = libm::exp(place[0]);
    let mut before = (0.0, 1.0);
    let mut sum = 0.0;
    for (edge, weight) in cells.edges.iter().zip(&cells.weights) {
        let here = excess.tails(edge + away);
        sum += weight * libm::log(spacing(before, here));
        before = here;
    }
    sum + cells.weights[cells.edges.len()] * libm::log(spacing(before, (1.0, 0.0)))
}

fn spacing(before: (f64, f64), here: (f64, f64)) -> f64 {
    let found = if before.0 < 0.5 { here.0 - before.0 } else { before.1 - here.1 };
    found.max(1e-300)
}

/// Gradient and expected information of the sum of logarithms.
fn score(kind: LawKind, cells: &Cells, place: &Place) -> (Place, [[f64; 3]; 3]) {
    let excess = Excess { kind, shape: libm::exp(place[1]), scale: libm::exp(place[2]) };
    let away = libm::exp(place[0]);
    let total = cells.total();
    let mut gradient = [0.0; 3];
    let mut information = [[0.0; 3]; 3];
    let mut add = |change: Place, share: f64, weight: f64| {
        for row in 0..3 {
            gradient[row] += weight * change[row] / share;
            for column in 0..3 {
                information[row][column] += total * change[row] * change[column] / share;
            }
        }
    };
    let (mut before, mut slope) = ((0.0, 1.0), [0.0; 3]);
    for (edge, weight) in cells.edges.iter().zip(&cells.weights) {
        let distance = edge + away;
        let here = excess.tails(distance);
        let mut slopes = excess.slopes(distance);
        // The shift moves every excess by as much as it moves the smallest one.
        slopes[0] *= away / distance;
        add(std::array::from_fn(|axis| slopes[axis] - slope[axis]), spacing(before, here), *weight);
        (before, slope) = (here, slopes);
    }
    add(slope.map(|each| -each), spacing(before, (1.0, 0.0)), cells.weights[cells.edges.len()]);
    (gradient, information)
}

/// Fisher scoring, damped where a step does not climb (K. Levenberg 1944, D. W. Marquardt 1963).
pub(super) fn climb(kind: LawKind, cells: &Cells, bounds: &Bounds, from: Place) -> Found {
    const STEPS: usize = 200;
    const LONGEST: f64 = 3.0;
    let mut place = bounds.clamp(from);
    let mut best = value(kind, cells, &place);
    let mut damping = 1e-4;
    let (mut gradient, mut information) = score(kind, cells, &place);
    for _ in 0..STEPS {
        let free = is_free(&place, &gradient, bounds);
        let Some(step) = solve(&information, &gradient, free, damping) else { break };
        let rise: f64 = (0..3).map(|axis| step[axis] * gradient[axis]).sum();
        if rise < 1e-9 {
            break;
        }
        let next =
            bounds.clamp(std::array::from_fn(|axis| place[axis] + step[axis].clamp(-LONGEST, LONGEST)));
        let reached = value(kind, cells, &next);
        if reached > best {
            (place, best) = (next, reached);
            damping = (damping / 10.0).max(1e-12);
            (gradient, information) = score(kind, cells, &place);
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    Found { place, value: best, information }
}

/// Axes that are not held by a bound.
fn is_free(place: &Place, gradient: &Place, bounds: &Bounds) -> [bool; 3] {
    std::array::from_fn(|axis| {
        !((place[axis] >= bounds.high[axis] && gradient[axis] > 0.0)
            || (place[axis] <= bounds.low[axis] && gradient[axis] < 0.0))
    })
}

/// Solves (A + damping diag A) step = g on the free axes; others stay.
fn solve(matrix: &[[f64; 3]; 3], right: &Place, free: [bool; 3], damping: f64) -> Option<Place> {
    let mut rows = [[0.0; 4]; 3];
    for row in 0..3 {
        for column in 0..3 {
            let is_kept = free[row] && free[column];
            rows[row][column] = if is_kept { matrix[row][column] } else { 0.0 };
        }
        rows[row][row] = if free[row] { matrix[row][row] * (1.0 + damping) } else { 1.0 };
        rows[row][3] = if free[row] { right[row] } else { 0.0 };
    }
    eliminate(&mut rows)?;
    Some(std::array::from_fn(|row| rows[row][3]))
}

/// Gauss-Jordan elimination with pivots by row.
fn eliminate<const WIDTH: usize>(rows: &mut [[f64; WIDTH]; 3]) -> Option<()> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let head = rows[column][column];
        if head == 0.0 || !head.is_finite() {
            return None;
        }
        for entry in &mut rows[column] {
            *entry /= head;
        }
        let lead = rows[column];
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column {
                let factor = row[column];
                for (entry, top) in row.iter_mut().zip(&lead) {
                    *entry -= factor * top;
                }
            }
        }
    }
    Some(())
}

/// Standard errors of the three logarithms; not a number for a shift that a bound holds, and where the information is
/// singular.
pub(super) fn errors(found: &Found, bounds: &Bounds) -> Place {
    let is_held = bounds.holds_shift(&found.place);
    let mut rows = [[0.0; 6]; 3];
    for (index, row) in rows.iter_mut().enumerate() {
        row[..3].copy_from_slice(&found.information[index]);
        row[3 + index] = 1.0;
    }
    if is_held {
        rows[0] = [1.0, 0.0, 0.0, f64::NAN, 0.0, 0.0];
        rows[1][0] = 0.0;
        rows[2][0] = 0.0;
    }
    if eliminate(&mut rows).is_none() {
        return [f64::NAN; 3];
    }
    // The row of a held shift is empty but for its not-a-number, which elimination must not spread.
    std::array::from_fn(|axis| rows[axis][3 + axis].sqrt())
}

//! Convex functions below points.

/// Gives the places of the corners of the greatest convex function below points, in order of `x`.
///
/// The shorter slice counts. `x` ascends strictly.
#[must_use]
pub fn convex_corners(x: &[f64], y: &[f64]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for place in 0..x.len().min(y.len()) {
        while let [.., before, last] = *kept {
            let rise = (y[last] - y[before]) * (x[place] - x[last]);
            if rise < (y[place] - y[last]) * (x[last] - x[before]) {
                break;
            }
            kept.pop();
        }
        kept.push(place);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::convex_corners;

    #[test]
    fn points_on_or_above_a_chord_are_no_corners() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(convex_corners(&x, &[0.0, 1.0, 2.0, 3.0, 4.0]), [0, 4]);
        assert_eq!(convex_corners(&x, &[0.0, -2.0, 5.0, -1.0, 4.0]), [0, 1, 3, 4]);
        assert_eq!(convex_corners(&x[..1], &[7.0, 8.0]), [0]);
        assert!(convex_corners(&[], &[]).is_empty());
    }
}

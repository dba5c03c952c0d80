"""Natural cubic splines: smooth curves through a few values."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles


def natural_spline(points: Doubles, knots: Doubles) -> Doubles:
    """The matrix that turns the values of a curve at ascending knots into its values at points, [points, knots].

    Between the knots the curve is the natural cubic spline, the one of least bending (integral of the squared second
    derivative) through these values; beyond them it would go on straight. Constant and linear functions are their own
    splines, so they are reproduced exactly.

    >>> natural_spline(np.array([0.0, 2.5, 4.0]), np.array([0.0, 1.0, 4.0])) @ np.array([3.0, 4.0, 7.0])
    array([3. , 5.5, 7. ])
    """
    widths, values = np.diff(knots), np.eye(len(knots))
    # The second derivatives m at the knots are continuous and 0 at both ends:
    # h[i-1] m[i-1] + 2 (h[i-1] + h[i]) m[i] + h[i] m[i+1] = 6 (slope[i] - slope[i-1]).
    bending = np.zeros_like(values)
    if len(knots) > 2:
        inner, slopes = slice(1, -1), np.diff(values, axis=0) / widths[:, None]
        system = np.diag(2 * (widths[:-1] + widths[1:])) + np.diag(widths[1:-1], 1) + np.diag(widths[1:-1], -1)
        bending[inner] = np.linalg.solve(system, 6 * np.diff(slopes, axis=0))
    piece = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, len(knots) - 2)
    width = widths[piece][:, None]
    after = (points - knots[piece])[:, None]
    before = width - after
    chord: Doubles = (values[piece] * before + values[piece + 1] * after) / width
    return (
        chord
        + (
            bending[piece] * (before**3 / width - before * width)
            + bending[piece + 1] * (after**3 / width - after * width)
        )
        / 6
    )

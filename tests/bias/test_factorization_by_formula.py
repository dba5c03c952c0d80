"""One update of the factors by its formula, and the starts that a further term is looked for from."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles, ratio
from ultr.bias.factorization import (
    Factorization,
    _climb,
    _growth,
    _misfit,
    _split,
    fit_one_more,
    fit_rank_one,
    log_likelihood,
)


def _table(seed: int = 0, *, tables: int = 2) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Clicks, impressions, rows and columns of two terms, [tables, groups, positions] and so on."""
    random = np.random.default_rng(seed)
    shown = random.integers(5, 60, size=(tables, 3, 4)).astype(np.float64)
    clicks = random.binomial(shown.astype(int), 0.4).astype(np.float64)
    return clicks, shown, random.uniform(0.1, 0.5, (tables, 3, 2)), random.uniform(0.1, 0.9, (tables, 2, 4))


def test_an_entry_grows_by_its_formula() -> None:
    """u = C / (Q C + (1 - Q) D), C = sum w c, D = sum w (n - c) P / (1 - P), Q the largest P, w = a b / P."""
    clicks, shown, rows, columns = _table()
    found = _growth(*(np.moveaxis(each, 0, -1) for each in (clicks, shown - clicks, rows, columns.transpose(0, 2, 1))))
    rates = rows @ columns
    for table in range(2):
        for group in range(3):
            p = rates[table, group]
            for term in range(2):
                weight = rows[table, group, term] * columns[table, term] / p
                gained = (weight * clicks[table, group]).sum()
                lost = (weight * (shown - clicks)[table, group] * p / (1 - p)).sum()
                # A term of weight w loses (n - c) w P / (1 - P), and gains w c; a factor of both cancels.
                expected = gained / (p.max() * gained + (1 - p.max()) * lost)
                assert found[group, term, table] == pytest.approx(expected)


def test_an_entry_that_nothing_was_shown_of_stays_as_it_is() -> None:
    zero = np.zeros((1, 2, 1))
    assert _growth(zero, zero, np.full((1, 1, 1), 0.3), np.full((2, 1, 1), 0.5)).tolist() == [[[1.0]]]


@pytest.mark.parametrize(("rounds", "steps"), [(10, 10), (11, 20), (20, 20), (0, 0)])
def test_rounds_are_counted_in_tens_of_updates_of_rows_and_then_columns(rounds: int, steps: int) -> None:
    clicks, shown, rows, columns = _table()
    found = _climb(clicks, shown, rows, columns, rounds=rounds, tolerance=0.0)
    a, b = np.moveaxis(rows, 0, -1), np.moveaxis(columns.transpose(0, 2, 1), 0, -1)
    c, s = np.moveaxis(clicks, 0, -1), np.moveaxis(shown - clicks, 0, -1)
    for _ in range(steps):
        a = a * _growth(c, s, a, b)
        b = b * _growth(c.swapaxes(0, 1), s.swapaxes(0, 1), b, a)
    np.testing.assert_allclose(found.rows, np.moveaxis(a, -1, 0))
    np.testing.assert_allclose(found.columns, np.moveaxis(b, -1, 0).transpose(0, 2, 1))
    np.testing.assert_allclose(found.log_likelihood, log_likelihood(clicks, shown, found.rates))


def test_a_table_that_gains_no_more_rests_while_others_go_on() -> None:
    """The first table is fitted exactly already; the other is not, and goes on to where it would go alone."""
    clicks, shown, rows, columns = _table()
    clicks[0] = (shown * (rows @ columns))[0]
    found = _climb(clicks, shown, rows, columns, rounds=200, tolerance=1e-9)
    np.testing.assert_allclose(found.rates[0], (rows @ columns)[0], rtol=1e-9)
    alone = _climb(clicks[1:], shown[1:], rows[1:], columns[1:], rounds=200, tolerance=1e-9)
    np.testing.assert_allclose(found.rates[1], alone.rates[0], rtol=1e-12)
    short = _climb(clicks, shown, rows, columns, rounds=10, tolerance=1e-9)
    assert found.log_likelihood[1] > short.log_likelihood[1] + 1e-3
    lazy = _climb(clicks, shown, rows, columns, rounds=200, tolerance=1e9)
    np.testing.assert_array_equal(lazy.rows, short.rows)


def test_the_likelihood_is_that_of_scipy() -> None:
    from scipy.stats import binom

    clicks, shown, rows, columns = _table()
    rates = rows @ columns
    # The coefficients do not depend on the rates: differences of two fits are what counts.
    other = np.full_like(rates, 0.25)
    expected = (binom.logpmf(clicks, shown, rates) - binom.logpmf(clicks, shown, other)).sum(axis=(1, 2))
    found = log_likelihood(clicks, shown, rates) - log_likelihood(clicks, shown, other)
    np.testing.assert_allclose(found, expected)
    assert np.isfinite(log_likelihood(np.array([[1.0]]), np.array([[2.0]]), np.array([[0.0]])))
    assert np.isfinite(log_likelihood(np.array([[1.0]]), np.array([[2.0]]), np.array([[1.0]])))


def test_rates_are_0_where_nothing_was_shown() -> None:
    assert ratio(np.array([[1.0, 0.0]]), np.array([[4.0, 0.0]])).tolist() == [[0.25, 0.0]]
    assert ratio(np.array([[1.0]]), np.array([[1.0]])).tolist() == [[1.0]]


@pytest.mark.parametrize("largest", [0, 1])
def test_the_largest_term_is_split_into_two_that_lean_to_opposite_sides(largest: int) -> None:
    rows = np.array([[[0.1, 0.1], [0.2, 0.1]]])
    columns = np.array([[[0.5, 0.2, 0.1], [0.1, 0.1, 0.1]]])
    if largest:
        rows, columns = rows[:, :, ::-1], columns[:, ::-1]
    fit = Factorization(rows, columns, np.zeros(1))
    up, down = np.array([[1.0, -0.5]]), np.array([[0.5, 0.0, -1.0]])
    new_rows, new_columns = _split(fit, up, down)
    a, b = rows[0, :, largest], columns[0, largest]
    whole = rows @ columns
    expected = np.outer(a * np.exp(up[0]), b * np.exp(down[0])) + np.outer(a * np.exp(-up[0]), b * np.exp(-down[0]))
    expected = expected + np.outer(rows[0, :, 1 - largest], columns[0, 1 - largest])
    # As many clicks as before, on the whole.
    expected *= whole.sum() / expected.sum()
    np.testing.assert_allclose((new_rows @ new_columns)[0], expected)
    assert new_rows.shape == (1, 2, 3)


def test_no_chance_of_a_start_is_above_99_percent_and_none_is_0() -> None:
    fit = Factorization(np.array([[[0.98], [0.0]]]), np.array([[[1.0, 0.0]]]), np.zeros(1))
    rows, columns = _split(fit, np.array([[1.0, 1.0]]), np.array([[1.0, 1.0]]))
    assert (rows @ columns).max() <= 0.99 + 1e-12
    assert (rows > 0).all()
    assert (columns > 0).all()
    assert rows.min() == pytest.approx(1e-6 * rows.max())


def test_a_misfit_is_0_where_nothing_can_differ() -> None:
    """A rate of 0 has no variance, and leaves no residual to be divided."""
    up, down = _misfit(
        np.array([[[3.0, 0.0], [1.0, 0.0]]]), np.full((1, 2, 2), 8.0), np.array([[[0.25, 0], [0.25, 0]]])
    )
    np.testing.assert_allclose(np.abs(up[0]), [1.0, 1.0])
    np.testing.assert_allclose(np.abs(down[0]), [1.0, 0.0], atol=1e-12)


def test_one_term_begins_with_the_margins() -> None:
    """Without a round of updates, rates are those of the groups times those of positions over the largest."""
    clicks, shown, _, _ = _table()
    fit = fit_rank_one(clicks, shown, rounds=0)
    groups, positions = clicks.sum(axis=2) / shown.sum(axis=2), clicks.sum(axis=1) / shown.sum(axis=1)
    expected = groups[:, :, None] * (positions / positions.max(axis=1, keepdims=True))[:, None, :]
    np.testing.assert_allclose(fit.rates, expected)


def test_a_further_term_that_gains_nothing_is_one_of_nothing() -> None:
    clicks, shown, _, _ = _table()
    fit = fit_rank_one(clicks, shown)
    none = fit_one_more(clicks, shown, fit, np.random.default_rng(0), starts=0)
    np.testing.assert_array_equal(none.rates, fit.rates)
    np.testing.assert_array_equal(none.log_likelihood, fit.log_likelihood)
    one, two = (fit_one_more(clicks, shown, fit, np.random.default_rng(0), starts=starts) for starts in (1, 2))
    assert (one.log_likelihood > fit.log_likelihood).all()
    assert (two.log_likelihood >= one.log_likelihood).all()
    for found in (one, two):
        np.testing.assert_allclose(found.log_likelihood, log_likelihood(clicks, shown, found.rates))

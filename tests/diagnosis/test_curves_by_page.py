"""Position curves by what is the same for a whole page, against users whose curves are known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.diagnosis.logs import THETA, by_device, thorough

from ultr.diagnosis import Verdict
from ultr.diagnosis.curves_by_page import CurvesByPage, LevelCurve, PageCurves


def found(**options: object) -> CurvesByPage:
    curves = CurvesByPage.of(by_device(**options), samples=100)  # type: ignore[arg-type]
    assert curves is not None
    return curves


def test_users_who_look_less_far_down_are_found_with_their_curve() -> None:
    (device,) = (curves := found()).factors
    assert [curve.level for curve in device.curves] == ["desk", "phone"]
    for curve, power in zip(device.curves, (1, 2), strict=True):
        np.testing.assert_allclose(curve.values, THETA**power, atol=0.04)
        _, low, high = curve.band(device.queries)
        assert (low <= curve.values).all() and (curve.values <= high).all()  # noqa: PT018
    ratio = device.ratios()["phone"]
    truth = (THETA**2).sum() / THETA.sum()
    assert ratio.low < truth < ratio.high < 1
    section = curves.section()
    mixed = " Since one number for each position is not enough, trust may be what differs, and not sight."
    assert curves.section(scalar=False).answer == section.answer + mixed
    assert section.title == "Is position bias the same for every device?"
    assert section.verdict is Verdict.CAREFUL
    desk, phone = (curve.values.sum() for curve in device.curves)
    assert "With device phone, users see fewer positions than with desk" in section.answer
    assert f"{phone:.1f} against {desk:.1f} down to position 4" in section.answer
    assert "Vectorization" in section.advice


def test_users_who_look_alike_are_not_told_apart() -> None:
    section = found(steepness=1.0).section()
    assert section.verdict is Verdict.GOOD
    assert section.answer == "With device phone, users see as many positions as with desk, up to chance."
    assert section.advice == ""


def test_a_device_on_which_no_document_moved_cannot_be_told() -> None:
    section = found(phone_swaps=False).section()
    assert section.verdict is Verdict.UNKNOWN
    assert section.answer == "For device phone it cannot be told: swaps link too few positions there."
    assert list(section.numbers["factors"]["device"]["ratios"]) == []


def test_shorter_pages_are_compared_by_the_positions_that_both_have() -> None:
    (device,) = found(phone_length=2).factors
    assert device.shared()["phone"].tolist() == [True, True, False, False]
    assert device.depths()["phone"] == pytest.approx((1 + THETA[1] ** 2, 1 + THETA[1]), abs=0.05)
    assert "down to position 2" in device.judged()[1][0]


def test_what_differs_within_a_page_has_no_curve_of_its_own() -> None:
    layout = np.tile(["wide", "narrow"], 8_000)
    assert CurvesByPage.of(thorough(pages=4_000, layout=layout), samples=5) is None
    assert CurvesByPage.of(thorough(pages=4_000), samples=5) is None
    assert CurvesByPage.of(thorough(pages=4_000, device=["desk"] * 16_000), samples=5) is None


def curves(ratio: float, spread: float, *, failed: int = 0) -> PageCurves:
    """Two values whose depths have a ratio that all draws have, but for a spread."""
    draws = np.tile([1.0, 1.0], (100, 1))
    other = 2 * ratio * np.linspace(1 - spread, 1 + spread, 100)[:, None] * [0.5, 0.5]
    other[:failed] = np.nan
    return PageCurves(
        "device",
        ("1", "2"),
        (
            LevelCurve("desk", 0.6, np.array([1.0, 1.0]), draws),
            LevelCurve("phone", 0.4, np.array([ratio, ratio]), other),
        ),
        10_000,
    )


@pytest.mark.parametrize(
    ("ratio", "spread", "failed", "verdict", "words"),
    [
        (0.8, 0.1, 0, Verdict.CAREFUL, "fewer positions"),
        (1.25, 0.1, 0, Verdict.CAREFUL, "more positions"),
        (0.95, 0.1, 0, Verdict.GOOD, "as many positions"),
        (0.2, 0.6, 0, Verdict.UNKNOWN, "cannot be told"),
        (0.2, 0.4, 0, Verdict.CAREFUL, "fewer positions"),
        (0.8, 0.1, 10, Verdict.CAREFUL, "fewer positions"),
        (0.8, 0.1, 11, Verdict.UNKNOWN, "cannot be told"),
    ],
)
def test_words_follow_the_interval(ratio: float, spread: float, failed: int, verdict: Verdict, words: str) -> None:
    judged, said = curves(ratio, spread, failed=failed).judged()
    assert judged is verdict
    assert words in said[0]

from __future__ import annotations

import pytest

from ultr.clicks import CLICK_MODELS, click_model
from ultr.errors import OptionError


def test_the_names_are_those_of_the_documentation() -> None:
    assert list(CLICK_MODELS) == [
        "real",
        "trust",
        "position-based",
        "user-browsing",
        "cascade",
        "dependent-click",
        "dynamic-bayesian",
    ]


def test_an_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"real, trust, .* did you mean 'cascade'\?"):
        click_model("casscade")


def test_an_unknown_option_lists_the_options_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"trust must be one of noise, examination, .*'noise'\?"):
        click_model("trust", nois=0.1)


def test_options_reach_the_model() -> None:
    assert click_model("position-based", examination=[1.0, 0.5]).positions == 2

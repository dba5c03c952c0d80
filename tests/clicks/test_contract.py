"""Every registered click model under the contract that comes with the package."""

from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from ultr.clicks import CLICK_MODELS, ClickModel, PositionBased, click_model
from ultr.errors import OptionError
from ultr.testing.clicks import ClickModelContract

every_model = pytest.mark.parametrize("name", sorted(CLICK_MODELS))


@pytest.mark.parametrize("model", [click_model(name) for name in sorted(CLICK_MODELS)], ids=lambda model: model.name)
class TestEveryModel(ClickModelContract):
    def test_it_shows_ten_positions_and_is_registered_under_its_name(self, model: ClickModel) -> None:
        assert model.positions == 10
        assert CLICK_MODELS[model.name] is type(model)

    def test_it_can_be_sent_to_another_process(self, model: ClickModel) -> None:
        assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize("model", [PositionBased(examination=examination) for examination in ((0.5,), (1.0, 0.5, 0.2))])
class TestOtherNumbersOfPositions(ClickModelContract): ...


@every_model
@pytest.mark.parametrize("noise", [-0.1, 1.5, float("nan"), "much", True, None])
def test_noise_must_be_a_probability(name: str, noise: object) -> None:
    if "noise" in {field.name for field in fields(CLICK_MODELS[name])}:
        with pytest.raises(OptionError, match="noise must be a probability"):
            click_model(name, noise=noise)

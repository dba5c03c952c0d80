"""Contract tests that come with the package, so that members of other packages inherit what ours keep to.

A contract is a class of pytest tests. Derive from it and give it what is to be tested:

    @pytest.mark.parametrize("model", [Eager(), Eager(noise=0.5)])
    class TestEager(ClickModelContract): ...

They need pytest and hypothesis: `pip install '.[testing]'` in a checkout of ultr.
"""

try:
    import hypothesis  # noqa: F401
    import pytest
except ModuleNotFoundError as error:
    from ultr.errors import MissingExtraError, how_to_install

    raise MissingExtraError(f"ultr.testing needs pytest and hypothesis: {how_to_install('testing')}") from error

# Before the contracts are imported, so that their failed asserts show the values.
pytest.register_assert_rewrite(*(f"ultr.testing.{each}" for each in ("clicks", "exports", "methods", "metrics")))

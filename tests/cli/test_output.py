from __future__ import annotations

import pytest

from ultr.cli.output import print_table

ROWS = [{"ranker": f"method {number}", **{f"nDCG@{cutoff}": ".123 ± .456" for cutoff in range(9)}} for number in (1, 2)]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_wide_table_goes_on_below_and_breaks_no_number(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(ROWS, title="measures")
    text = capsys.readouterr().out
    assert text.count(".123 ± .456") == 18
    assert max(map(len, text.splitlines())) <= columns
    assert text.count("method 2") == {40: 5, 80: 2, 200: 1}[columns]


def test_long_words_wrap_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table([{"name": "click", "what it is": "what every debiased ranker must beat, " * 3}], title="")
    text = capsys.readouterr().out
    assert text.count("click") == 1
    assert max(map(len, text.splitlines())) <= 40

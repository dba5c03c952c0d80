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


@pytest.mark.parametrize("columns", range(44, 120, 3))
def test_no_cell_is_cut_off_at_any_width(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    row = {
        "ranker": "the lists as shown",
        "value": "2.391 2.118-2.710",
        "effective clicks": "12,345",
        "clipped": "0.5%",
        "never shown": "10.0%",
    }
    print_table([row, row | {"ranker": "raw", "value": "1.971"}])
    words = capsys.readouterr().out.split()
    assert max(map(words.count, ("12,345", "0.5%", "10.0%"))) == min(map(words.count, ("12,345", "0.5%", "10.0%"))) == 2
    assert {"2.391", "2.118-2.710", "1.971", "effective", "clicks", "clipped", "never", "shown"} <= set(words)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_sentence_that_begins_with_a_number_wraps_as_words_do(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    sentence = "12 groups of documents, each of which was shown at two positions or more and clicked at one of them"
    print_table([{"what": "tested", "number": sentence}, {"what": "p", "number": "0.03"}])
    text = capsys.readouterr().out
    assert [word for word in text.split() if word in sentence.split()] == sentence.split()
    assert "0.03" in text
    assert max(map(len, text.splitlines())) <= columns


def test_long_names_of_rows_wrap_before_numbers_go_on_below(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = "ranks better than raw clicks (rates on other pages)"
    row = {"model ...": claim, "answer": "cannot tell", "by": "+0.1006", "low": "+0.0575", "high": "+0.1457"}
    for columns, lines in ((80, 2), (110, 1)):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table([row])
        text = capsys.readouterr().out
        shown = [line for line in text.splitlines() if any(word in line.split() for word in claim.split())]
        assert len(shown) == lines
        assert shown[0].split()[-3:] == ["+0.1006", "+0.0575", "+0.1457"]
        assert max(map(len, text.splitlines())) <= columns

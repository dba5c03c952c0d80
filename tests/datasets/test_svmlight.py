from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ultr.data.judged import JudgedLists
from ultr.datasets import text_blocks
from ultr.datasets.svmlight import read_svmlight
from ultr.datasets.svmlight_block import parse_ordinary
from ultr.datasets.svmlight_lines import Block, Limits, parse_lines
from ultr.errors import DataError, OptionError

LIMITS = Limits(feature=1000, label=31)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
ORDINARY = b"""2 qid:7 1:0.5 2:-1e-3 3:4 # first
0 qid:7 1:0.25 2:0 3:.5
1 qid:a-b 1:1. 2:3e2 3:0.1 #last
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def to_file(content: bytes) -> Path:
        path = tmp_path / "judged.txt"
        path.write_bytes(content)
        return path

    return to_file


def same_blocks(one: Block, other: Block) -> bool:
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Block)]
    return all(_same(a, b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0) for a, b in pairs)


def _same(one: Any, other: Any) -> bool:
    """True for equal values, missing ones at the same places."""
    floats = getattr(one, "dtype", np.dtype(object)).kind == "f"
    return np.array_equal(one, other, equal_nan=floats)


def same_lists(one: JudgedLists, other: JudgedLists) -> bool:
    return one.fingerprint() == other.fingerprint() and repr(one) == repr(other)


class TestWhatIsRead:
    def test_an_ordinary_file_gives_its_features_labels_and_queries(self, write: Callable[[bytes], Path]) -> None:
        lists = read_svmlight(write(ORDINARY))
        expected = np.array([[0.5, -1e-3, 4], [0.25, 0, 0.5], [1, 300, 0.1]], dtype=np.float32)
        assert np.array_equal(lists.features, expected)
        assert lists.features.dtype == np.float32
        assert lists.labels.tolist() == [2, 0, 1]
        assert lists.offsets.tolist() == [0, 2, 3]
        assert lists.query_ids.tolist() == ["7", "a-b"]
        assert lists.feature_names == ("1", "2", "3")
        assert lists.max_label == 2

    @pytest.mark.parametrize("kind", COMPRESS)
    def test_first_bytes_tell_the_compression_whatever_the_name(
        self, kind: str, write: Callable[[bytes], Path]
    ) -> None:
        plain = read_svmlight(write(ORDINARY))
        assert same_lists(read_svmlight(write(COMPRESS[kind](ORDINARY))), plain)

    @pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
    def test_archives_joined_end_to_end_are_read_to_the_end(self, kind: str, write: Callable[[bytes], Path]) -> None:
        plain = read_svmlight(write(ORDINARY))
        lines = ORDINARY.splitlines(keepends=True)
        joined = b"".join(COMPRESS[kind](line) for line in lines)
        assert same_lists(read_svmlight(write(joined)), plain)

    def test_zeros_after_a_gzip_archive_are_padding(self, write: Callable[[bytes], Path]) -> None:
        plain = read_svmlight(write(ORDINARY))
        assert same_lists(read_svmlight(write(gzip.compress(ORDINARY) + bytes(600_000))), plain)

    @pytest.mark.parametrize(
        "odd",
        [
            ORDINARY.replace(b" ", b"\t"),
            ORDINARY.replace(b" ", b"  "),
            ORDINARY.replace(b"\n", b"\r\n"),
            ORDINARY.replace(b"\n", b"\n\n"),
            ORDINARY.replace(b"\n", b" \n"),
            b"# a header\n \t\n" + ORDINARY,
            b"\xef\xbb\xbf" + ORDINARY,
            b" " + ORDINARY,
            ORDINARY.rstrip(b"\n"),
            ORDINARY.replace(b"0 qid", b"-0e3 qid").replace(b"2 qid", b"+2.0 qid"),
            ORDINARY.replace(b"1:0.5", b"01:+0.5").replace(b"3:4", b"3:40E-1"),
            ORDINARY.replace(b"# first", "# première # twice 1:2".encode()),
        ],
    )
    def test_odd_but_legal_forms_give_the_same(self, odd: bytes, write: Callable[[bytes], Path]) -> None:
        plain = read_svmlight(write(ORDINARY))
        assert same_lists(read_svmlight(write(odd)), plain)

    def test_features_left_out_are_zero(self, write: Callable[[bytes], Path]) -> None:
        lists = read_svmlight(write(b"0 qid:1\n1 qid:1 2:5\n0 qid:2 1:1 4:2\n"))
        assert lists.features.tolist() == [[0, 0, 0, 0], [0, 5, 0, 0], [1, 0, 0, 2]]

    def test_features_sets_the_number_of_columns(self, write: Callable[[bytes], Path]) -> None:
        lists = read_svmlight(write(ORDINARY), features=5)
        assert lists.features.shape == (3, 5)
        assert not lists.features[:, 3:].any()

    def test_max_label_is_kept_though_no_document_reaches_it(self, write: Callable[[bytes], Path]) -> None:
        assert read_svmlight(write(ORDINARY), max_label=4).max_label == 4

    def test_max_feature_raises_the_limit_of_ids(self, write: Callable[[bytes], Path]) -> None:
        path = write(b"0 qid:1 200000:1\n")
        assert read_svmlight(path, max_feature=200_000).features.shape == (1, 200_000)
        with pytest.raises(DataError, match="max_feature"):
            read_svmlight(path)

    def test_query_ids_are_strings_and_not_numbers(self, write: Callable[[bytes], Path]) -> None:
        lists = read_svmlight(write("0 qid:7 1:1\n0 qid:07 1:1\n0 qid:ü:x 1:1\n".encode()))
        assert lists.query_ids.tolist() == ["7", "07", "ü:x"]

    def test_queries_and_widths_carry_over_from_block_to_block(
        self, write: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = b"".join(b"%d qid:%d 1:%d %d:2\n" % (i % 3, i // 7, i, 2 + i // 9) for i in range(100))
        whole = read_svmlight(write(content))
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
        assert same_lists(read_svmlight(write(content)), whole)
        assert whole.queries == 15


BAD_LINES = {
    "missing qid": (b"1 1:0.5", "qid"),
    "no qid at all": (b"1", "qid"),
    "an empty qid": (b"1 qid: 1:1", "query id"),
    "a qid with a control character": (b"1 qid:a\x00 1:1", "query id"),
    "a qid with a delete character": (b"1 qid:\x7f 1:1", "query id"),
    "a qid of a hard space": ("1 qid:\u00a0 1:1".encode(), "query id"),
    "a qid without end": (b"1 qid:" + b"a" * 300 + b" 1:1", "query id"),
    "unsorted ids": (b"1 qid:9 2:1 1:1", "sort"),
    "repeated ids": (b"1 qid:9 2:1 2:1", "repeated"),
    "id zero": (b"1 qid:9 0:1 1:1", "'0:1'"),
    "a negative id": (b"1 qid:9 -1:1", "'-1:1'"),
    "an absurd id": (b"1 qid:9 4000000000:1", "max_feature"),
    "an id of many digits": (b"1 qid:9 " + b"9" * 5000 + b":1", "max_feature"),
    "a value without id": (b"1 qid:9 0.5", "'0.5'"),
    "an empty value": (b"1 qid:9 1:", "'1:'"),
    "NaN with a sign": (b"1 qid:9 1:-nan", "finite"),
    "NaN with a payload": (b"1 qid:9 1:nan(2)", "finite"),
    "infinity": (b"1 qid:9 1:-inf", "finite"),
    "a hexadecimal value": (b"1 qid:9 1:0x10", "finite"),
    "a value with underscores": (b"1 qid:9 1:1_000", "finite"),
    "a value in other digits": ("1 qid:9 1:٣".encode(), "finite"),
    "a value that overflows float32": (b"1 qid:9 1:1e39", "float32"),
    "a value that overflows float64": (b"1 qid:9 1:1e999", "float32"),
    "a negative label": (b"-1 qid:9 1:1", "label '-1'"),
    "a fractional label": (b"1.5 qid:9 1:1", "label '1.5'"),
    "a label that is no number": (b"x qid:9 1:1", "label 'x'"),
    "a label without end": (b"1e999 qid:9 1:1", "label '1e999'"),
    "a label above 31": (b"32 qid:9 1:1", "max_label"),
    "bytes that are not UTF-8": (b"1 qid:\xff 1:1", "UTF-8"),
    "bytes that are not UTF-8 in a comment": (b"1 qid:9 1:1 # \xff", "UTF-8"),
    "a query that comes again": (b"1 qid:1 1:1", "'1' comes again"),
    "a lone carriage return": (b"1 qid:9 1:1\r2:1", "finite"),
}


class TestWhatIsRefused:
    @pytest.mark.parametrize("blank", [b"", b"\n"], ids=["ordinary", "odd"])
    @pytest.mark.parametrize("name", BAD_LINES)
    def test_a_bad_line_is_named_with_its_file_and_number(
        self, name: str, blank: bytes, write: Callable[[bytes], Path]
    ) -> None:
        line, word = BAD_LINES[name]
        path = write(b"0 qid:1 1:1\n0 qid:2 1:1\n" + blank + line + b"\n0 qid:3 1:1\n")
        with pytest.raises(DataError) as caught:
            read_svmlight(path)
        message = str(caught.value)
        assert message.startswith(f"{path}, line {3 + len(blank)}: ")
        assert word in message
        assert "; " in message
        assert len(message) < 300 + len(str(path))

    def test_the_line_number_counts_the_lines_of_earlier_blocks(
        self, write: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
        path = write(b"0 qid:1 1:1\n" * 500 + b"\n0 qid:2 1:x\n")
        with pytest.raises(DataError, match="line 502: "):
            read_svmlight(path)

    def test_a_query_that_comes_again_in_a_later_block_is_refused(
        self, write: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
        path = write(b"0 qid:1 1:1\n" * 50 + b"0 qid:2 1:1\n" * 50 + b"0 qid:1 1:1\n")
        with pytest.raises(DataError, match="line 101: query '1' comes again"):
            read_svmlight(path)

    def test_an_id_above_the_known_features_is_refused(self, write: Callable[[bytes], Path]) -> None:
        path = write(ORDINARY)
        with pytest.raises(DataError, match=r"line 1: .*2 known features"):
            read_svmlight(path, features=2)

    def test_a_label_above_the_known_maximum_is_refused(self, write: Callable[[bytes], Path]) -> None:
        with pytest.raises(DataError, match="line 1: the label '2' is above 1"):
            read_svmlight(write(ORDINARY), max_label=1)

    def test_one_stray_id_does_not_make_a_huge_matrix(self, write: Callable[[bytes], Path]) -> None:
        path = write(b"0 qid:1 1:1\n" * 9_000 + b"0 qid:1 99999:1\n")
        with pytest.raises(DataError, match=r"line 9001: feature id 99999 makes 9,001 documents take 3\.6 GB"):
            read_svmlight(path)

    def test_a_line_without_end_is_refused(
        self, write: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
        monkeypatch.setattr(text_blocks, "LONGEST_LINE", 1024)
        path = write(b"0 qid:1 1:1\n" * 9 + b"0 qid:1 1:" + b"1" * 5000)
        with pytest.raises(DataError, match="line 10: the line is longer"):
            read_svmlight(path)

    @pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n", gzip.compress(b"", mtime=0)])
    def test_a_file_without_documents_is_refused(self, content: bytes, write: Callable[[bytes], Path]) -> None:
        path = write(content)
        with pytest.raises(DataError, match="holds no documents") as caught:
            read_svmlight(path)
        assert str(path) in str(caught.value)

    def test_a_file_without_features_is_refused_unless_their_number_is_known(
        self, write: Callable[[bytes], Path]
    ) -> None:
        path = write(b"0 qid:1\n1 qid:1\n")
        with pytest.raises(DataError, match="holds no features"):
            read_svmlight(path)
        assert read_svmlight(path, features=3).features.shape == (2, 3)

    @pytest.mark.parametrize("keep", [7, 40, -1])
    @pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
    def test_a_truncated_archive_is_refused(self, kind: str, keep: int, write: Callable[[bytes], Path]) -> None:
        path = write(COMPRESS[kind](ORDINARY)[:keep])
        with pytest.raises(DataError, match=r"damaged or cut short: .* line 1") as caught:
            read_svmlight(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
    def test_a_damaged_archive_is_refused(self, kind: str, write: Callable[[bytes], Path]) -> None:
        content = bytearray(COMPRESS[kind](ORDINARY))
        content[len(content) // 2] ^= 255
        with pytest.raises(DataError, match="damaged or cut short"):
            read_svmlight(write(bytes(content)))

    def test_a_missing_file_and_a_folder_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"missing\.txt: No such file"):
            read_svmlight(tmp_path / "missing.txt")
        with pytest.raises(DataError, match="Is a directory"):
            read_svmlight(tmp_path)

    def test_options_that_do_not_fit_are_refused(self, write: Callable[[bytes], Path]) -> None:
        path = write(ORDINARY)
        with pytest.raises(OptionError, match="features"):
            read_svmlight(path, features=0)
        with pytest.raises(OptionError, match="max_label must be at most 31"):
            read_svmlight(path, max_label=32)
        with pytest.raises(OptionError, match="max_feature"):
            read_svmlight(path, max_feature=0)

    @pytest.mark.parametrize("blank", [b"", b"\n"], ids=["ordinary", "odd"])
    def test_a_feature_may_be_missing_which_is_not_zero(self, blank: bytes, write: Callable[[bytes], Path]) -> None:
        path = write(b"0 qid:1 1:nan 2:1\n" + blank + b"1 qid:1 1:2 3:NaN\n")
        missing = np.float32("nan")
        found = read_svmlight(path).features
        assert found.tobytes() == np.array([[missing, 1, 0], [2, 0, missing]], dtype=np.float32).tobytes()

    def test_a_bad_file_does_not_spoil_the_next_one(self, write: Callable[[bytes], Path]) -> None:
        with pytest.raises(DataError):
            read_svmlight(write(b"0 qid:1 1:x\n"))
        assert read_svmlight(write(ORDINARY)).documents == 3


def near_misses() -> st.SearchStrategy[bytes]:
    """Text that is nearly right: parts of lines, joined in any order."""
    parts = [b"0", b"1", b"12", b" ", b"  ", b"\t", b"\n", b"\r\n", b" qid:1", b" qid:2 ", b"qid:", b" 1:0.5", b" 2:"]
    parts += [
        b" 3:1e5",
        b" 10:-.5",
        b":",
        b"#",
        b" # x",
        b".",
        b"-",
        b"+1",
        b"e",
        b"nan",
        b"NaN(",
        b"\xff",
        "é".encode(),
        b"\0",
    ]
    parts += [b"0 qid:3 1:1 2:2\n", b"2 qid:3 2:0.125 #c\n", b" 0:1", b" 99999:1", b"1e39", b"inf", b"_", b" 2:1_0"]
    parts += [b" qid:\x7f", " qid:\u00a0".encode(), " qid:é 1:1".encode(), b" 5", b"3:4", b"qid", b" 0x3:1", b"0X1"]
    lines = [b"0 qid:3 1:1 2:2\n", b"2 qid:3 2:0.125 #c\n", b"1 qid:4 1:.5 7:1e-3\n", b"1 qid:x\n"]
    broken = st.tuples(st.sampled_from(lines), st.integers(0, 20), st.integers(0, 2), st.sampled_from(parts)).map(
        lambda cut: cut[0][: cut[1]] + cut[3] + cut[0][cut[1] + cut[2] :]
    )
    good = st.lists(st.sampled_from(lines), max_size=3).map(b"".join)
    return st.one_of(
        st.lists(st.sampled_from(parts), max_size=24).map(b"".join),
        st.tuples(good, broken, good).map(b"".join),
    )


class TestTwoParsersOfOneGrammar:
    @given(st.one_of(near_misses(), st.binary(max_size=60)))
    @settings(max_examples=1500)
    def test_the_fast_parser_agrees_wherever_it_does_not_decline(self, text: bytes) -> None:
        text = text if text.endswith(b"\n") else text + b"\n"
        fast = parse_ordinary(text, line=5, limits=LIMITS)
        if fast is not None:
            assert same_blocks(fast, parse_lines(text, path="file", line=5, limits=LIMITS))

    @given(st.lists(st.floats(width=64), min_size=1, max_size=8), st.sampled_from(["%r", "%.6f", "%.3e", "%.17g"]))
    @settings(max_examples=500)
    def test_numbers_agree_bit_for_bit(self, numbers: list[float], form: str) -> None:
        line = "1 qid:1" + "".join(f" {i + 1}:{form % number}" for i, number in enumerate(numbers)) + "\n"
        fast = parse_ordinary(line.encode(), line=1, limits=LIMITS)
        try:
            slow = parse_lines(line.encode(), path="file", line=1, limits=LIMITS)
        except DataError:
            assert fast is None
            return
        with np.errstate(over="ignore"):
            exact = np.array([float(form % number) for number in numbers]).astype(np.float32)
        assert slow.values.tobytes() == exact.tobytes()
        if fast is not None:
            assert fast.values.tobytes() == exact.tobytes()

    @pytest.mark.parametrize("text", [ORDINARY.replace(b"# first", b""), ORDINARY.replace(b"\n", b"\r\n"), ORDINARY])
    def test_ordinary_text_is_not_declined(self, text: bytes) -> None:
        assert parse_ordinary(text, line=1, limits=LIMITS) is not None

    @given(content=st.one_of(near_misses(), st.binary(max_size=200)), kind=st.sampled_from(sorted(COMPRESS)))
    @settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_arbitrary_bytes_raise_nothing_but_data_errors(
        self, content: bytes, kind: str, write: Callable[[bytes], Path]
    ) -> None:
        path = write(COMPRESS[kind](content))
        message = ""
        try:
            read_svmlight(path)
        except DataError as error:
            message = str(error)
        assert not message or str(path) in message


@st.composite
def judged_lists(draw: st.DrawFn) -> JudgedLists:
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    width = draw(st.integers(1, 6))
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = st.lists(numbers, min_size=width, max_size=width)
    documents = sum(lengths)
    names = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="#"), min_size=1, max_size=6)
    return JudgedLists.of(
        features=draw(st.lists(rows, min_size=documents, max_size=documents)),
        labels=draw(st.lists(st.integers(0, 31), min_size=documents, max_size=documents)),
        offsets=np.cumsum([0, *lengths]),
        query_ids=draw(st.lists(names, min_size=len(lengths), max_size=len(lengths), unique=True)),
        max_label=31,
    )


def as_text(lists: JudgedLists) -> bytes:
    names = np.repeat(lists.query_ids, lists.lengths)
    lines = [
        f"{label} qid:{name}" + "".join(f" {i + 1}:{float(value)!r}" for i, value in enumerate(row))
        for label, name, row in zip(lists.labels, names, lists.features, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


class TestAgainstOthers:
    @given(lists=judged_lists())
    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_written_lists_come_back_the_same(self, lists: JudgedLists, write: Callable[[bytes], Path]) -> None:
        path = write(as_text(lists))
        assert same_lists(read_svmlight(path, max_label=31), lists)

    def test_sklearn_reads_the_same_from_sparse_text(self, write: Callable[[bytes], Path]) -> None:
        random = np.random.default_rng(3)
        lines = []
        for document in range(3000):
            columns = np.flatnonzero(random.random(40) < 0.3) + 1
            pairs = "".join(f" {column}:{random.normal():.6g}" for column in columns)
            lines.append(f"{random.integers(5)} qid:{document // 20}{pairs} # {document}\n")
        path = write("".join(lines).encode())
        features, labels, queries = load_svmlight_file(str(path), query_id=True)
        lists = read_svmlight(path)
        assert np.array_equal(lists.features, features.toarray().astype(np.float32))
        assert np.array_equal(lists.labels, labels)
        assert np.array_equal(np.repeat(lists.query_ids.astype(np.int64), lists.lengths), queries)

    @pytest.mark.parametrize("name", ["mq2007/S1.txt.gz", "mq2008/S5.txt.gz"])
    def test_sklearn_reads_the_same_from_letor(self, name: str, shared_data: Path) -> None:
        path = shared_data / name
        features, labels, queries = load_svmlight_file(str(path), query_id=True)
        lists = read_svmlight(path)
        assert np.array_equal(lists.features, features.toarray().astype(np.float32))
        assert np.array_equal(lists.labels, labels)
        assert np.array_equal(np.repeat(lists.query_ids.astype(np.int64), lists.lengths), queries)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import ultr
from tests.scoring.odd_graphs import endless, odd_graphs, with_external_data, write
from tests.serving.ranker_file import write_ranker

from ultr.errors import ModelFileError
from ultr.scoring import Scorer
from ultr.scoring.external_data import has_external_data
from ultr.serving.model_slot import ModelSlot

PLACES = ["initializer", "constant", "subgraph"]


@pytest.mark.parametrize("what", odd_graphs())
def test_a_graph_that_no_ranker_has_is_refused_when_it_is_loaded(what: str, tmp_path: Path) -> None:
    file = write(odd_graphs()[what], tmp_path / "odd.onnx")
    for load in (Scorer.load, ModelSlot):
        with pytest.raises(ModelFileError, match=r"odd\.onnx .*; export") as caught:
            load(file, seconds=0.2)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["no input", "two outputs", "too few scores"])
def test_serving_and_ranking_refuse_it_in_one_sentence(what: str, tmp_path: Path) -> None:
    file = write(odd_graphs()[what], tmp_path / "odd.onnx")
    (tmp_path / "candidates.csv").write_text("query,bm25,clicks:30d,age\na,1,2,3\n")
    for arguments in (["rank", file, tmp_path / "candidates.csv"], ["serve", file, "--port", 0]):
        sentence = ultr(*arguments, expect=2).stderr
        assert "export" in sentence
        assert sentence.count("\n") == 1


def test_a_graph_that_fails_on_some_candidates_is_told_in_a_sentence(tmp_path: Path) -> None:
    from onnxruntime import RunOptions

    scorer = Scorer.load(write(endless(above=100), tmp_path / "odd.onnx"))
    assert scorer.score(np.ones((2, 3), dtype=np.float32)).tolist() == [3, 3]
    stopped = RunOptions()
    stopped.terminate = True
    with pytest.raises(ModelFileError, match=r"odd\.onnx cannot score these candidates"):
        scorer.score(np.full((2, 3), 100, dtype=np.float32), run=stopped)


@pytest.mark.parametrize("where", PLACES)
def test_weights_in_other_files_are_never_read(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that is named is there, in the working folder, where the runtime would find it."""
    monkeypatch.chdir(tmp_path)
    Path("secret.txt").write_bytes(bytes([1, 2, 3, 4]))
    content = with_external_data("secret.txt")[where].SerializeToString()
    assert has_external_data(content)
    with pytest.raises(ModelFileError, match="has weights in other files, which are not read"):
        Scorer.of_bytes(content)


def test_a_number_that_is_written_longer_than_needed_hides_nothing(tmp_path: Path) -> None:
    """Protocol buffers may write 8 as two bytes, which a search for the usual ones would miss."""
    content = with_external_data("secret.txt")["initializer"].SerializeToString()
    tensor = next(
        each for each in with_external_data("secret.txt")["initializer"].graph.initializer if each.name == "secret"
    )
    plain = tensor.SerializeToString()
    assert plain.endswith(b"\x70\x01"), "data_location, field 14, is EXTERNAL"
    longer = plain[:-2] + b"\xf0\x00\x81\x00"
    graph = b"\x2a" + bytes([len(longer)]) + longer
    assert has_external_data(b"\x3a" + bytes([len(graph)]) + graph)
    assert has_external_data(content)


def test_files_of_their_own_have_all_inside(tmp_path: Path) -> None:
    assert not has_external_data(write_ranker(tmp_path / "model.onnx", ["location", "external_data"]).read_bytes())


@pytest.mark.parametrize("content", [b"\xff" * 20, b"\x3a\xff\x01", b"\x3b", b"\x08"])
def test_what_is_no_protocol_buffer_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|number"):
        has_external_data(content)

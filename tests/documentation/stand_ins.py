"""Small made-up data in the place of what a page's reader has; its notes `given: ...` call these by name."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.cli.console import ultr
from tests.evaluation.interleaved_log import LAST, Shown
from tests.evaluation.interleaved_log import write as write_interleaved
from tests.serving.ranker_file import write_ranker
from tests.updating.days import write_day

from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.layouts import LAYOUTS
from ultr.datasets.letor_like import letor_like
from ultr.methods import ClickBaseline, Vectorization
from ultr.relevance import MLP, Trees
from ultr.simulation.log import simulate


def judged(folder: str, layout: str = "mq2007", *, queries: int = 40) -> None:
    """A data set with the files, features and grades of a well-known one."""
    known = LAYOUTS[layout]
    for number, file in enumerate(file for part in known.files(1)[-1] for file in part):
        path = Path(folder, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        candidates(str(path), features=known.features, grades=known.max_label + 1, queries=queries, seed=number)


def candidates(file: str, *, features: int = 46, grades: int = 3, queries: int = 2, seed: int = 0) -> None:
    """Judged candidates of some queries as SVMlight; the first feature follows the grade."""
    random = np.random.default_rng(seed)
    with Path(file).open("w") as lines:
        for query in range(queries):
            for label in random.integers(grades, size=12):
                values = random.random(features).round(3)
                values[0] += label
                print(
                    label, f"qid:{seed}{query}", *(f"{n + 1}:{value:.3f}" for n, value in enumerate(values)), file=lines
                )


def model(folder: str) -> None:
    """A ranker of 64 features, hardly trained."""
    data = letor_like(train_queries=100, validation_queries=1, test_queries=1)
    log = simulate(data.train, click_model("trust"), impressions=5_000)
    Vectorization(relevance=MLP(hidden=(16,), steps=5), dimension=2).fit(log).save(folder)


def forest(folder: str) -> None:
    """A ranker by five trees."""
    data = letor_like(train_queries=100, validation_queries=1, test_queries=1)
    log = simulate(data.train, click_model("trust"), impressions=5_000)
    ClickBaseline(relevance=Trees(rounds=5)).fit(log).save(folder)


def shop(folder: str = "shop", forest: str = "forest", network: str = "net") -> None:
    """Rankers of three features, one by trees and one by a network, and their log."""
    random = np.random.default_rng(0)
    features = np.stack([random.gamma(2, 3, 400), random.gamma(2, 1, 400), random.integers(1, 60, 400)], axis=1)
    clicks = random.binomial(20, 1 / (1 + np.exp(4 - features[:, 0] / 3)))
    log = ClickLog.of(
        features=features,
        feature_names=["bm25_title", "bm25_body", "age"],
        documents=np.arange(400),
        offsets=np.arange(0, 401, 10),
        impressions=np.full(40, 20),
        clicks=clicks,
        queries=np.arange(40),
    )
    log.save(folder)
    ClickBaseline(relevance=Trees(rounds=5, fewest_documents=20)).fit(log).save(forest)
    Vectorization(relevance=MLP(hidden=(8,), steps=20), dimension=2).fit(log).save(network)


def raw_log(*files: str, pages: int = 200, **names: str) -> None:
    """A raw log, one row a shown document, shared out to files; `names` are other names of columns."""
    random = np.random.default_rng(0)
    rows = pages * 5
    page, document = np.repeat(np.arange(pages), 5), np.tile(np.arange(5), pages)
    query = page % 40
    columns = {
        "impression": page,
        "session": page // 2,
        "page": page,
        "query": query,
        "document": document,
        "position": document + 1,
        "click": (random.random(rows) < 0.5 / (document + 1)).astype(int),
        "device": np.where(page % 3, "phone", "desktop"),
        "layout": np.where(page % 2, "list", "grid"),
        "grade": (query + document) % 3,
        "shown_at": page,
        "bm25_title": np.cos(query + document),
        "bm25_body": np.sin(query * document),
        "age": document * 1.0,
    }
    table = pa.table({names.get(name, name): values for name, values in columns.items()})
    for number, file in enumerate(files):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        part = table.filter(pa.array(page % len(files) == number))
        if file.endswith(".parquet"):
            parquet.write_table(part, file)
        else:
            with gzip.open(file, "wb") as out:
                csv.write_csv(part, out)


def candidates_of_raw_log(file: str) -> None:
    """The documents of two queries of `raw_log` with their features."""
    query, document = np.repeat(np.arange(2), 5), np.tile(np.arange(5), 2)
    columns = {"bm25_title": np.cos(query + document), "bm25_body": np.sin(query * document), "age": document * 1.0}
    parquet.write_table(pa.table({"query": query, "document": document} | columns), file)


def features(file: str) -> None:
    """Features of the documents of `raw_log`, for a table of its own."""
    parquet.write_table(pa.table({"document": np.arange(5), "freshness": np.arange(5) / 5}), file)


def titles(file: str) -> None:
    """Titles of some documents."""
    Path(file).write_text("document,title\n1,Red shoes\n2,Blue shoes\n")


def shown_and_clicked(shown: str, clicks: str) -> None:
    """A log in two tables; three clicks were written twice, and two are on documents that were not shown."""
    search, place = np.repeat(np.arange(200), 5), np.tile(np.arange(5), 200)
    table = {"search": search, "page": 1 + search % 2, "query": search % 40, "sku": (search + place) % 7}
    parquet.write_table(pa.table(table | {"position": place + 1}), shown)
    clicked = [f"{n},{1 + n % 2},{(n + n * n % 3) % 7},{n}" for n in range(200)]
    Path(clicks).write_text("\n".join(["search,page,sku,at", *clicked, *clicked[:3], "0,1,99,0", "1,2,99,1", ""]))


def days(*files: str) -> None:
    """Logs of days that follow each other, with prices that change."""
    for day, file in enumerate(files):
        page, place = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
        document = (page + place) % 5
        table = {
            "impression": [f"{day}-{number}" for number in page],
            "query": page % 11,
            "document": document,
            "position": place + 1,
            "click": (page * (place + 2) % 7 == 0).astype(int),
            "day": [f"2024-01-0{1 + day}"] * 900,
            "device": np.where(page % 3 == 0, "phone", "desk"),
            "price": document + 0.5 * day,
        }
        parquet.write_table(pa.table(table), file)


def shop_days(folder: str, *dates: str) -> None:
    """Raw logs of days with clicks enough to compare rankers by."""
    for date in dates:
        write_day(Path(folder), date)


def lenient(run: str) -> None:
    """Let the gate of a run pass rankers that have hardly learned anything."""
    settings = Path(run, "settings.toml")
    text = settings.read_text().replace("tolerance = 0.01", "tolerance = 5.0")
    settings.write_text(text.replace("largest_shift = 1.5", "largest_shift = 20.0"))


def hotel_searches(file: str) -> None:
    """Searches with some of the columns of Expedia's file, every third in random order; each has a click."""
    random, lines = np.random.default_rng(0), []
    for search in range(240):
        clicked = min(random.geometric(0.4), 5)
        for position, hotel in enumerate(random.permutation(40)[:5], start=1):
            outcome = f"{int(position == clicked)},{int(position == clicked and search % 2)},NULL"
            score = "NULL" if hotel % 4 == 0 else hotel / 40
            shown = f"{search},2013-01-{1 + search // 10:02d} 10:00:00,{hotel},{hotel % 5},{score},{position}"
            lines.append(f"{shown},{90 + hotel},{int(search % 3 == 0)},{outcome}")
    columns = "srch_id,date_time,prop_id,prop_starrating,prop_location_score2,position,price_usd,random_bool"
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([f"{columns},click_bool,booking_bool,gross_bookings_usd", *lines, ""])
    Path(file).write_bytes(gzip.compress(text.encode()) if file.endswith(".gz") else text.encode())


def clickouts(file: str) -> None:
    """Sessions of hotel searches, a row for each action."""
    lines = [
        "user_id,session_id,timestamp,step,action_type,reference,platform,city,device,current_filters,impressions,prices"
    ]
    for n in range(60):
        hotels, device = [(n + place) % 9 for place in range(4)], ("mobile", "desktop", "tablet")[n % 3]
        start = f"u{n},s{n},{1541037460 + n}"
        lines.append(f"{start},1,search for poi,Port,AU,Sydney,{device},,,")
        shown = f"{'|'.join(map(str, hotels))},{'|'.join(str(40 + 9 * hotel) for hotel in hotels)}"
        lines.append(f"{start},2,clickout item,{hotels[n % 4]},AU,{'Sydney' if n % 2 else 'Rio'},{device},,{shown}")
    Path(file).write_text("\n".join([*lines, ""]))


def ubi(folder: str) -> None:
    """Queries and events of User Behavior Insights, the ordinals counted from 0."""
    Path(folder).mkdir()
    queries: list[dict[str, object]] = []
    events: list[dict[str, object]] = []
    for n in range(200):
        hits = [f"sku-{(n + place) % 7}" for place in range(5)]
        attributes = {"device": ("phone", "desktop")[n % 2]}
        query = {"query_id": f"q{n}", "user_query": f"word {n % 20}", "timestamp": 1717527761998 + n}
        queries.append(query | {"query_response_hit_ids": hits, "query_attributes": attributes})
        place = n * n % 3
        inside = {"object": {"object_id": hits[place]}, "position": {"ordinal": place}}
        events.append({"query_id": f"q{n}", "action_name": "click", "event_attributes": inside})
    for name, rows in {"ubi_queries": queries, "ubi_events": events}.items():
        Path(folder, f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def interleaved(folder: str, *, old: int, new: int, both: int = 0, nobody: int = 0) -> None:
    """A log of interleaved lists with votes for either model, for both alike or for nobody."""
    outcomes = [*([("x", 1.0)] for _ in range(old)), *([("y", 1.0)] for _ in range(new))]
    outcomes += [*([("x", 1.0), ("y", 2.0)] for _ in range(both)), *([] for _ in range(nobody))]
    lists = [Shown(f"q{number}", clicks) for number, clicks in enumerate(outcomes)]
    write_interleaved(Path(folder), [*lists, LAST])


def exported(*files: str) -> None:
    """Rankers of three features as `ultr export` writes them."""
    for seed, file in enumerate(files):
        write_ranker(Path(file), seed=seed)


def result_pages(file: str, *, query: str = "query", labels: bool = False) -> None:
    """A log with one row a result page, as those that the case studies are about."""
    random = np.random.default_rng(0)
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt") as out:
        print("split", query, "docs", "clicks", "labels", sep="\t", file=out)
        for page in range(300):
            shown = ",".join(str(10 * (page % 30) + place) for place in range(10))
            bits = "".join(str(int(random.random() < 0.6 / place)) for place in range(1, 11))
            grades = ",".join(map(str, random.integers(4, size=10))) if labels else ""
            print("labelled", page % 30, shown, bits, grades, sep="\t", file=out)


def click_log(folder: str) -> None:
    """The folder of a click log without swaps, which is examined quickly."""
    data = letor_like(train_queries=60, validation_queries=20, test_queries=20)
    simulate(data.train, click_model("trust"), impressions=20_000, svm_share=0.1).save(folder)


def log_with_swaps() -> ClickLog:
    """Three documents that were seen at three positions each."""
    shown = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    return ClickLog.of(
        features=np.eye(3),
        documents=shown.ravel(),
        offsets=[0, 3, 6, 9],
        impressions=[900, 900, 900],
        clicks=[500, 200, 100, 450, 160, 120, 400, 250, 90],
        queries=[0, 0, 0],
    )


def runs(folder: str) -> None:
    """Models of one log, `raw` and `upper` being the bounds, and their data set."""
    judged(folder)
    data, short = f"mq2007={folder}", ("--steps", 3, "--set", "hidden=8")
    ultr("simulate", "--data", data, "--impressions", 5_000, "--out", "log")
    for name, method in (("model", "vectorization"), ("other", "dla"), ("raw", "click")):
        ultr("train", method, "--log", "log", *short, "--out", name)
    ultr("train", "label", "--data", data, *short, "--out", "upper")


def demo() -> None:
    """What `ultr demo` leaves."""
    ultr("demo", "--out", "demo")


def network(folder: str, data: str, log: str) -> None:
    """A network, with the data set and the log that it was trained on."""
    judged(data)
    ultr("simulate", "--data", f"mq2007={data}", "--impressions", 5_000, "--out", log)
    ultr("train", "vectorization", "--log", log, "--steps", 3, "--set", "hidden=8", "--out", folder)


def small_demo(patch: pytest.MonkeyPatch) -> None:
    """Let `ultr demo` take seconds."""
    from ultr.experiments import demo

    patch.setattr(demo, "run", partial(demo.run, queries=100, impressions=20_000, steps=3))
    patch.setattr(
        demo, "letor_like", lambda **sizes: letor_like(**sizes | {"validation_queries": 50, "test_queries": 100})
    )

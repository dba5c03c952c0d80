"""Two public logs of hotel searches, from the raw file to a verdict.

    python -m benchmarks.real_logs --data FOLDER                    # all of it, half an hour on one core
    python -m benchmarks.real_logs --data FOLDER --parts control    # one part
    python -m benchmarks.real_logs --data FOLDER --logs OUT         # also keep the logs, for ultr doctor and the like

FOLDER holds `expedia/train.csv` (ICDM 2013) and `trivago/train.csv` (RecSys 2019) as they were published, or parts of
them with a row for each shown hotel: `expedia/searches*.csv.gz`, `trivago/clickouts*.csv.gz`. Several files are taken
together. Expedia: rankers learn from searches in the site's order and are judged by clicks and bookings in searches
in random order. trivago: position and device as two real bias factors, judged by held-out clicks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from benchmarks.measurement import Measurement, write
from benchmarks.real_logs import control, expedia, trivago
from benchmarks.real_logs.contenders import Sizes
from benchmarks.real_logs.printing import heading
from benchmarks.real_logs.reading import EXPEDIA, TRIVAGO, read_expedia, read_trivago
from ultr.errors import UltrError

PARTS = ("doctor", "rankings", "control", "trivago")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_logs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--hidden", type=int, nargs="+", default=Sizes.hidden, help="layers of networks")
    parser.add_argument("--steps", type=int, default=Sizes.steps, help="steps of networks; %(default)s")
    parser.add_argument("--rounds", type=int, default=Sizes.rounds, help="rounds of trees; %(default)s")
    parser.add_argument("--samples", type=int, default=1000, help="resamples for intervals of curves; %(default)s")
    parser.add_argument(
        "--clicks", type=int, nargs="+", default=[1, 10, 100], help="clicks for each list in the control"
    )
    parser.add_argument("--logs", type=Path, metavar="OUT", help="folder for the click logs")
    parser.add_argument("--trained", type=Path, metavar="OUT", help="folder that keeps what trainings left, to go on")
    parser.add_argument("--figure", type=Path, help="file for the position curves of Expedia")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    try:
        write(study(asked), asked.json)
    except UltrError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error


def study(asked: argparse.Namespace) -> list[Measurement]:
    """Print the parts that are asked for, and give their numbers."""
    sizes, seeds = Sizes(tuple(asked.hidden), asked.steps, asked.rounds), tuple(asked.seeds)
    found: list[Measurement] = []
    if asked.parts != ["trivago"]:
        print("# Expedia")
        searches = expedia.Searches(*read_expedia(asked.data / EXPEDIA, pairs="rankings" in asked.parts), sizes, seeds)
        if asked.logs is not None:
            for name, part in (("expedia", searches.ordered), ("expedia-random", searches.random)):
                part.log.save(asked.logs / name, overwrite=True)
        if "doctor" in asked.parts:
            expedia.print_facts(searches)
            expedia.print_beforehand(searches)
        if "rankings" in asked.parts:
            standings, curves = expedia.train(searches, asked.trained)
            heading("Judged by users who saw random orders, nDCG@10")
            standings.print()
            found += standings.measurements()
            found += expedia.print_curves(searches, curves, samples=asked.samples, figure=asked.figure)
        if "control" in asked.parts:
            train, test = searches.ordered.log, searches.random.log
            found += control.print_control(
                train, test, eta=searches.exponent(), sizes=sizes, impressions=asked.clicks, seeds=seeds
            )
    if "trivago" in asked.parts:
        print("\n# trivago")
        shown = read_trivago(asked.data / TRIVAGO)
        if asked.logs is not None:
            shown.log.save(asked.logs / "trivago", overwrite=True)
        found += trivago.print_study(shown, sizes=sizes, seed=seeds[0], samples=asked.samples)
    return found


if __name__ == "__main__":
    main()

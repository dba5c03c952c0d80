"""`make bench`: the quick benchmarks, one after the other. `benchmarks.quality` takes longer and is run by itself."""

from __future__ import annotations

import subprocess
import sys

for name in ("training", "reader", "simulator"):
    print(f"\n== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)

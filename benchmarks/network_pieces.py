"""What would make a network of the paper's size faster: its layers with one piece exchanged or left out.

    python -m benchmarks.network_pieces [--features 700 136 46] [--rounds 60]

A pass forward and backward over 2,560 documents by layers of 512-256-128, as a share of `torch.mm` in float32 on the
same shapes; all are timed in turn in one process. Rows without a piece rank worse or not at all: they bound what any
faster form of that piece could gain. `torch.compile` needs a C++ compiler, and its first call is told apart.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.measurement import Measurement, write
from benchmarks.training import BATCH, DIMENSION, HIDDEN, SHOWN, Case, multiply, seconds
from ultr.relevance.mlp import Layers
from ultr.train.allocator import keep_freed_memory

Between = Callable[[Tensor], Tensor]
"""What happens to the values of a hidden layer before the next one."""


def normalised(values: Tensor) -> Tensor:
    """Layer normalisation without gain and shift."""
    return functional.layer_norm(values, values.shape[-1:])


def folded(layers: Layers, inputs: Tensor) -> Tensor:
    """`Layers` with each normalisation folded into the next matrix: ((x - m) / s) W' = (x W' - m sum(W)) / s."""
    first, *rest = layers.linear
    values: Tensor = first(inputs)
    for layer in rest:
        assert isinstance(layer, nn.Linear)
        values = functional.elu(values, inplace=True)
        variance, mean = torch.var_mean(values, dim=-1, correction=0, keepdim=True)
        products = functional.linear(values, layer.weight) - mean * layer.weight.sum(dim=-1)
        values = products * (variance + 1e-5).rsqrt() + layer.bias
    return values


def passing(layers: Layers, between: Between) -> Callable[[Tensor], Tensor]:
    """A pass through the layers with something else between them."""

    def forward(inputs: Tensor) -> Tensor:
        first, *rest = layers.linear
        values: Tensor = first(inputs)
        for layer in rest:
            values = layer(between(values))
        return values

    return forward


@cache
def _compiled() -> Between:
    """ELU and normalisation as one piece of compiled code, made when it is first asked for."""
    made: Between = torch.compile(lambda values: normalised(functional.elu(values)))
    return made


def variants(layers: Layers) -> dict[str, tuple[Callable[[Tensor], Tensor], int]]:
    """A pass forward by name, and into how many parts the documents are cut."""
    between: dict[str, Between] = {
        "SiLU": lambda values: normalised(functional.silu(values)),
        "GELU": lambda values: normalised(functional.gelu(values, approximate="tanh")),
        "ReLU": lambda values: normalised(functional.relu(values, inplace=True)),
        "without ELU": normalised,
        "without normalisation": lambda values: functional.elu(values, inplace=True),
        "without both": lambda values: values,
        "compiled": lambda values: _compiled()(values),
    }
    return {
        "as it is": (layers, 1),
        **{name: (passing(layers, each), 1) for name, each in between.items()},
        "normalisation folded": (lambda inputs: folded(layers, inputs), 1),
        "in 2 parts": (layers, 2),
        "in 4 parts": (layers, 4),
        "in 8 parts": (layers, 8),
    }


def both_ways(layers: Layers, forward: Callable[[Tensor], Tensor], inputs: Tensor, parts: int) -> Callable[[], None]:
    """The pass with its gradients, part by part."""

    def run() -> None:
        layers.zero_grad()
        for part in inputs.chunk(parts):
            torch.autograd.backward(forward(part).sum())

    return run


def measure(features: int, *, rounds: int) -> list[Measurement]:
    """Time all in turn, print a row for each and give the shares."""
    generator = torch.Generator().manual_seed(0)
    layers = Layers(features, HIDDEN, DIMENSION, normalise=True, generator=generator)
    inputs = torch.randn(BATCH * SHOWN, features, generator=generator)
    runs = {"torch.mm": multiply(Case("vectorization", features))}
    runs |= {name: both_ways(layers, forward, inputs, parts) for name, (forward, parts) in variants(layers).items()}
    first_calls = {name: seconds(run) for name, run in runs.items()}
    times = [{name: seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    median = {name: statistics.median(each[name] for each in times) for name in runs}
    for name, time in median.items():
        late = f", the first call {first_calls[name]:.1f} s" if first_calls[name] > 1 else ""
        print(f"| {features} | {name} | {time * 1e3:.1f} | {median['torch.mm'] / time:.1%}{late} |", flush=True)
    return [
        Measurement(f"{name}, {features} features: share of torch.mm", median["torch.mm"] / time, "share")
        for name, time in median.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[700, 136, 46])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    keep_freed_memory()
    print(f"{torch.get_num_threads()} threads\n| features | layers | ms | share of torch.mm |\n|---|---|---|---|")
    write([found for each in asked.features for found in measure(each, rounds=asked.rounds)], asked.json)


if __name__ == "__main__":
    main()

"""Position bias estimated from a log. No torch here."""

from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable, adjacent_chain, all_pairs, pivot

__all__ = ["SWAP_ESTIMATORS", "SwapTable", "adjacent_chain", "all_pairs", "pivot"]

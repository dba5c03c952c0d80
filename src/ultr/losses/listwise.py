"""List-wise losses: the documents of one list compete for its clicks."""

from __future__ import annotations

from torch import Tensor

_NOTHING = -1e9
"""The logit of what is not there, where minus infinity has no gradient."""


def list_log_softmax(logits: Tensor, *, mask: Tensor) -> Tensor:
    """Log-probability of each document within its list, [lists, width]; 0 where there is no document."""
    return logits.masked_fill(~mask, float("-inf")).log_softmax(dim=-1).masked_fill(~mask, 0.0)


def softmax_cross_entropy(logits: Tensor, clicks: Tensor, *, mask: Tensor) -> Tensor:
    """Cross-entropy of each list's clicks under the softmax of its logits, [lists].

        L = - sum_i clicks_i log(exp(logits_i) / sum_j exp(logits_j))
          = (sum_i clicks_i) log(sum_j exp(logits_j)) - sum_i clicks_i logits_i

    It is linear in the clicks, so the clicks may be counts or rates of many impressions of the same list, and a
    list without a click adds nothing. Where mask is False, logits and clicks do not matter.
    """
    # The second form: on short lists, torch takes twice as long for a log_softmax and its derivatives.
    logits, clicks = logits.masked_fill(~mask, _NOTHING), clicks.masked_fill(~mask, 0.0)
    return clicks.sum(dim=-1) * logits.logsumexp(dim=-1) - (clicks * logits).sum(dim=-1)


def first_over_each(logits: Tensor) -> Tensor:
    """The probability of the first document of a list over that of each; only a weight, so without a gradient."""
    fixed = logits.detach()
    return (fixed[:, :1] - fixed).exp()


def order_loss(scores: Tensor, *, mask: Tensor) -> Tensor:
    """Minus the log-likelihood that documents are drawn one after the other in the order of each list, [lists].

        L = - sum_i log(exp(scores_i) / sum_{j >= i} exp(scores_j))

    Documents that are left compete for every place (Plackett and Luce). Where mask is False, scores do not matter.
    """
    left = scores.masked_fill(~mask, _NOTHING).flip(-1).logcumsumexp(dim=-1).flip(-1)
    return (left - scores).masked_fill(~mask, 0.0).sum(dim=-1)


def centred_squared_error(scores: Tensor, targets: Tensor, *, mask: Tensor) -> Tensor:
    """Squared error of each list's scores less their mean, [lists].

        L = 1/2 sum_i (scores_i - mean_j scores_j - targets_i)^2

    With targets whose mean is 0 it is a sum over pairs, sum_ij (scores_i - scores_j - targets_i + targets_j)^2 / 4n:
    what a whole list has in common does not count. Where mask is False, scores and targets do not matter.
    """
    means = scores.masked_fill(~mask, 0.0).sum(dim=-1, keepdim=True) / mask.sum(dim=-1, keepdim=True)
    return 0.5 * (scores - means - targets).square().masked_fill(~mask, 0.0).sum(dim=-1)

from __future__ import annotations

import math

import torch
from torch import Tensor

from ultr.losses import centred_squared_error, first_over_each, order_loss, softmax_cross_entropy


def _cross_entropy_by_definition(logits: list[float], clicks: list[float]) -> float:
    total = sum(math.exp(value) for value in logits)
    return -sum(click * math.log(math.exp(value) / total) for value, click in zip(logits, clicks, strict=True))


def test_it_is_the_formula_of_the_paper() -> None:
    logits, clicks = [0.3, -1.2, 2.0], [1.0, 0.0, 1.0]
    loss = softmax_cross_entropy(
        torch.tensor([logits]), torch.tensor([clicks]), mask=torch.ones(1, 3, dtype=torch.bool)
    )
    torch.testing.assert_close(loss, torch.tensor([_cross_entropy_by_definition(logits, clicks)]))


def test_what_the_mask_hides_changes_neither_the_loss_nor_its_gradient() -> None:
    def loss_and_gradient(hidden_logit: float, hidden_click: float) -> tuple[Tensor, Tensor]:
        logits = torch.tensor([[0.3, -1.2, hidden_logit]], requires_grad=True)
        clicks = torch.tensor([[1.0, 0.0, hidden_click]])
        loss = softmax_cross_entropy(logits, clicks, mask=torch.tensor([[True, True, False]])).sum()
        (gradient,) = torch.autograd.grad(loss, logits)
        return loss.detach(), gradient

    loss, gradient = loss_and_gradient(0.0, 0.0)
    other_loss, other_gradient = loss_and_gradient(50.0, 7.0)
    assert torch.equal(loss, other_loss)
    assert torch.equal(gradient, other_gradient)
    torch.testing.assert_close(loss, torch.tensor(_cross_entropy_by_definition([0.3, -1.2], [1.0, 0.0])))


def test_a_list_without_a_click_adds_nothing() -> None:
    loss = softmax_cross_entropy(torch.randn(2, 4), torch.zeros(2, 4), mask=torch.ones(2, 4, dtype=torch.bool))
    assert loss.tolist() == [0.0, 0.0]


def test_logits_beyond_the_range_of_exp_have_a_loss_and_a_gradient() -> None:
    logits = torch.tensor([[500.0, 498.0], [-500.0, -502.0]], requires_grad=True)
    losses = softmax_cross_entropy(logits, torch.tensor([[0.0, 1.0]] * 2), mask=torch.ones(2, 2, dtype=torch.bool))
    torch.testing.assert_close(losses.detach(), torch.full((2,), 2.0 + math.log1p(math.exp(-2.0))), rtol=1e-4, atol=0.0)
    (slope,) = torch.autograd.grad(losses.sum(), logits)
    share = 1 / (1 + math.exp(-2.0))
    torch.testing.assert_close(slope, torch.tensor([[share, -share]] * 2))


def test_its_curvature_is_that_of_a_softmax() -> None:
    clicks, shares = torch.tensor([[2.0, 0.0, 1.0]], dtype=torch.float64), [0.2, 0.5, 0.3]
    logits = torch.tensor([[math.log(each) for each in shares]], dtype=torch.float64)

    def loss(values: Tensor) -> Tensor:
        return softmax_cross_entropy(values, clicks, mask=torch.ones(1, 3, dtype=torch.bool)).sum()

    found = torch.autograd.functional.hessian(loss, logits)
    assert isinstance(found, Tensor)
    expected = [[3 * (p * (i == j) - p * q) for j, q in enumerate(shares)] for i, p in enumerate(shares)]
    torch.testing.assert_close(found.reshape(3, 3), torch.tensor(expected, dtype=torch.float64))


def test_counts_of_a_collapsed_list_give_the_sum_over_its_sessions() -> None:
    logits = torch.randn(1, 5, dtype=torch.float64)
    sessions = (torch.rand(200, 5) < 0.3).double()
    mask = torch.ones(1, 5, dtype=torch.bool)
    separate = softmax_cross_entropy(logits.expand(200, 5), sessions, mask=mask.expand(200, 5)).sum()
    collapsed = softmax_cross_entropy(logits, sessions.sum(0, keepdim=True), mask=mask).sum()
    torch.testing.assert_close(separate, collapsed)


def test_the_squared_error_is_that_of_all_pairs_of_a_list() -> None:
    scores, targets = [0.3, -1.2, 2.0], [1.0, -0.4, -0.6]
    pairs = sum(
        (one - other - wanted + unwanted) ** 2
        for one, wanted in zip(scores, targets, strict=True)
        for other, unwanted in zip(scores, targets, strict=True)
    )
    mask = torch.tensor([[True, True, True, False], [True, True, True, False]])
    found = centred_squared_error(
        torch.tensor([[*scores, 7.0], [*(each + 5 for each in scores), math.nan]]),
        torch.tensor([[*targets, 0.0], [*targets, math.nan]]),
        mask=mask,
    )
    torch.testing.assert_close(found, torch.tensor([pairs / 12, pairs / 12]))


def test_the_order_of_a_list_is_drawn_document_by_document() -> None:
    scores = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.3, 9.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    a, b, c = (math.exp(each) for each in (0.5, -1.0, 2.0))
    first = -math.log(a / (a + b + c)) - math.log(b / (b + c))
    second = -math.log(math.exp(1.0) / (math.exp(1.0) + math.exp(0.3)))
    losses = order_loss(scores, mask=mask)
    torch.testing.assert_close(losses.detach(), torch.tensor([first, second], dtype=torch.float64))
    (slope,) = torch.autograd.grad(losses.sum(), scores)
    assert slope[1, 2] == 0
    assert slope.isfinite().all()


def test_the_first_over_each_is_a_weight_without_a_gradient() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    weights = first_over_each(logits)
    expected = [1.0, math.exp(1.5), math.exp(-1.5)]
    torch.testing.assert_close(weights, torch.tensor([expected], dtype=torch.float64))
    assert not weights.requires_grad

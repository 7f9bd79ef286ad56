"""Laws that users register, and laws that fail."""

from __future__ import annotations

import pytest
import torch
from helpers.network_cases import Of
from torch import Tensor

from normeq.certification import Status, certify, register_law
from normeq.errors import UsageError


def test_operations_of_users_get_laws() -> None:
    @torch.library.custom_op("normeq_tests::mean3", mutates_args=())
    def mean3(x: Tensor) -> Tensor:
        return (x + x.roll(1, -1) + x.roll(-1, -1)) / 3

    @mean3.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    net, image = Of(lambda _, x: mean3(x)), torch.rand(1, 1, 4, 5)
    assert certify(net, image).norm is Status.UNKNOWN
    register_law(mean3, "linear")
    assert certify(net, image).norm is Status.PROVEN
    register_law("normeq_tests::mean3", lambda op, x: op.output(1.0, 1.0))
    assert certify(net, image).norm is Status.PROVEN
    register_law("normeq_tests::mean3", "curve")
    assert certify(net, image).norm is Status.UNKNOWN  # no counterexample
    with pytest.raises(UsageError, match="not a law"):
        register_law("normeq_tests::mean3", "magic")
    with pytest.raises(UsageError, match="does not name"):
        register_law("mean3", "linear")


def test_a_law_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @torch.library.custom_op("normeq_tests::faulty", mutates_args=())
    def faulty(x: Tensor) -> Tensor:
        return x.clone()

    @faulty.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    register_law(faulty, lambda op, x: 1 / 0)
    certificate = certify(Of(lambda _, x: faulty(x)), torch.rand(1, 1, 4, 5))
    assert certificate.norm is Status.UNKNOWN
    assert "the law of normeq_tests::faulty failed" in caplog.text

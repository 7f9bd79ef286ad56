from __future__ import annotations

import pytest
import torch

from normeq.certification import Status, certify
from normeq.errors import UsageError
from normeq.nn import EquivariantAttention, equivariant_attention
from normeq.nn.attention_layers import ratios


def test_gain_and_offset_pass_through(dtype: torch.dtype) -> None:
    attention = EquivariantAttention(8, 2).to(dtype)
    with torch.no_grad():
        attention.query_bias.uniform_(-1, 1)
        x = torch.rand(2, 6, 8, dtype=dtype)
        moved = attention(*[4 * x + 10] * 3)[0]
        expected = 4 * attention(x, x, x)[0] + 10
    torch.testing.assert_close(moved, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_constants_come_back_with_finite_gradients(value: float) -> None:
    attention = EquivariantAttention(8, 2)
    x = torch.full((1, 6, 8), value, requires_grad=True)
    out = attention(x, x, x)[0]
    torch.testing.assert_close(out, x)
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_order_of_axes_and_masks_are_those_of_torch() -> None:
    attention = EquivariantAttention(8, 2)
    turned = EquivariantAttention(8, 2, batch_first=False)
    turned.load_state_dict(attention.state_dict())
    x = torch.rand(1, 6, 8)
    forbidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    with torch.no_grad():
        expected = attention(x, x, x, is_causal=True)[0]
        torch.testing.assert_close(attention(x, x, x, attn_mask=forbidden)[0], expected)
        logits = torch.zeros(6, 6).masked_fill(forbidden, -torch.inf)
        torch.testing.assert_close(attention(x, x, x, attn_mask=logits)[0], expected)
        rows = x.transpose(0, 1)
        torch.testing.assert_close(
            turned(rows, rows, rows)[0].transpose(0, 1), attention(x, x, x)[0]
        )
    assert not torch.allclose(expected, attention(x, x, x)[0])


def test_hidden_keys_do_not_matter() -> None:
    attention = EquivariantAttention(8, 2)
    x = torch.rand(2, 6, 8)
    hidden = torch.zeros(2, 6, dtype=torch.bool)
    hidden[0, 4:] = True
    by_head = hidden[:, None, None, :].expand(2, 2, 6, 6).reshape(4, 6, 6)
    everything = torch.zeros(6, 6)
    with torch.no_grad():
        expected = attention(x, x, x, attn_mask=by_head)[0]
        for masks in ({}, {"attn_mask": everything}):
            out = attention(x, x, x, key_padding_mask=hidden, **masks)[0]
            torch.testing.assert_close(out, expected)
        torch.testing.assert_close(expected[1:], attention(*[x[1:]] * 3)[0])
    assert not torch.allclose(expected, attention(x, x, x)[0])


def test_attention_depends_on_its_input_beyond_the_values() -> None:
    q, k, v = torch.rand(3, 1, 6, 4)
    means = v.mean(-2, keepdim=True).expand_as(v)
    assert not torch.allclose(equivariant_attention(q, k, v), means, atol=1e-3)


def test_it_is_proven() -> None:
    class Tokens(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = EquivariantAttention(8, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attention(x, x, x)[0]

    assert certify(Tokens(), torch.rand(1, 6, 8)).norm is Status.PROVEN


def test_refusals() -> None:
    with pytest.raises(UsageError, match="not a multiple"):
        EquivariantAttention(7, 2)
    x = torch.rand(1, 6, 8)
    with pytest.raises(UsageError, match="add up to one"):
        equivariant_attention(x, x, x, dropout_p=0.1)


def test_ratios_of_nothing_are_nothing() -> None:
    assert torch.equal(ratios(torch.zeros(2, 3), (1,)), torch.zeros(2, 3))

"""Published checkpoints and their networks, written from the descriptions of their layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

State = dict[str, Tensor]
WIDTHS = (4, 6, 8)
BLOCKS = 2
DEPTH = 5


def random(*shape: int) -> Tensor:
    return torch.randn(*shape) / (torch.Size(shape).numel() / shape[0]) ** 0.5


def with_map(x: Tensor, sigma: float | None) -> Tensor:
    return x if sigma is None else torch.cat((x, sigma * torch.ones_like(x[:, :1])), 1)


def paper_conv(
    x: Tensor, state: State, name: str, variant: str, padding: int, **options: Any
) -> Tensor:
    """Apply a layer of the paper; `free` trailing input channels are unconstrained."""
    weight, free = state[f"{name}.weight"], options.pop("free", 0)
    if variant != "norm-equiv":
        return F.conv2d(x, weight, state.get(f"{name}.bias"), padding=padding, **options)
    kept = weight[:, : weight.shape[1] - free]
    rolled = kept.flatten(1).roll(1, 1).view_as(kept)
    kernel = torch.cat((rolled - kept + 1 / kept[0].numel(), weight[:, kept.shape[1] :]), 1)
    return F.conv2d(F.pad(x, [padding] * 4, "reflect"), kernel, **options)


def paper_activation(x: Tensor, variant: str) -> Tensor:
    if variant != "norm-equiv":
        return x.relu()
    return x.unflatten(1, (-1, 2)).sort(2).values.flatten(1, 2)


def paper_sum(a: Tensor, b: Tensor, state: State, name: str, variant: str) -> Tensor:
    if variant != "norm-equiv":
        return a + b
    alpha = state[f"{name}.alpha"]
    return alpha * a + (1 - alpha) * b


def paper_block(x: Tensor, state: State, name: str, variant: str) -> Tensor:
    branch = paper_conv(x, state, f"{name}.m_res.0", variant, 1)
    branch = paper_conv(paper_activation(branch, variant), state, f"{name}.m_res.2", variant, 1)
    return paper_sum(x, branch, state, f"{name}.sum", variant)


def paper_drunet(x: Tensor, sigma: float | None, state: State, variant: str) -> Tensor:
    free = 0 if sigma is None else 1
    encoded = [paper_conv(with_map(x, sigma), state, "m_head", variant, 1, free=free)]
    for scale in range(len(WIDTHS) - 1):
        x = encoded[-1]
        for block in range(BLOCKS):
            x = paper_block(x, state, f"m_down.{scale}.{block}", variant)
        encoded.append(paper_conv(x, state, f"m_down.{scale}.{BLOCKS}", variant, 0, stride=2))
    x = encoded[-1]
    for block in range(BLOCKS):
        x = paper_block(x, state, f"m_body.{block}", variant)
    for scale in range(len(WIDTHS) - 1):
        x = paper_sum(x, encoded.pop(), state, f"res.{scale}", variant)
        if variant == "norm-equiv":
            x = F.pixel_shuffle(paper_conv(x, state, f"m_up.{scale}.0.conv1x1", variant, 0), 2)
        else:
            weight, bias = state[f"m_up.{scale}.0.weight"], state.get(f"m_up.{scale}.0.bias")
            x = F.conv_transpose2d(x, weight, bias, stride=2)
        for block in range(1, BLOCKS + 1):
            x = paper_block(x, state, f"m_up.{scale}.{block}", variant)
    x = paper_sum(x, encoded.pop(), state, f"res.{len(WIDTHS) - 1}", variant)
    return paper_conv(x, state, "m_tail", variant, 1)


def paper_fdncnn(x: Tensor, sigma: float | None, state: State, variant: str) -> Tensor:
    x = with_map(x, sigma)
    for layer in range(DEPTH):
        free = 1 if layer == 0 and sigma is not None else 0
        x = paper_conv(x, state, f"fdncnn.{2 * layer}", variant, 1, free=free)
        x = paper_activation(x, variant) if layer < DEPTH - 1 else x
    return x


def drunet_layers(inputs: int, channels: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and weight shape of each layer, in the order of a file."""
    yield "m_head", (WIDTHS[0], inputs, 3, 3)
    for scale, width in enumerate(WIDTHS[:-1]):
        for block in range(BLOCKS):
            yield from (
                ((f"m_down.{scale}.{block}.m_res.{i}"), (width, width, 3, 3)) for i in (0, 2)
            )
        yield f"m_down.{scale}.{BLOCKS}", (WIDTHS[scale + 1], width, 2, 2)
    for block in range(BLOCKS):
        yield from ((f"m_body.{block}.m_res.{i}", (WIDTHS[-1], WIDTHS[-1], 3, 3)) for i in (0, 2))
    for scale, width in enumerate(reversed(WIDTHS[:-1])):
        yield f"m_up.{scale}.0", (WIDTHS[-1 - scale], width, 2, 2)
        for block in range(1, BLOCKS + 1):
            yield from ((f"m_up.{scale}.{block}.m_res.{i}", (width, width, 3, 3)) for i in (0, 2))
    yield "m_tail", (channels, WIDTHS[0], 3, 3)


def paper_drunet_state(variant: str, blind: bool, channels: int) -> State:
    state: State = {}
    for name, shape in drunet_layers(channels + (not blind), channels):
        transposed = name.startswith("m_up") and name.endswith(".0") and "m_res" not in name
        if transposed and variant == "norm-equiv":
            state[f"{name}.conv1x1.weight"] = random(4 * shape[1], shape[0], 1, 1)
            continue
        state[f"{name}.weight"] = random(*shape)
        if variant == "ordinary":
            state[f"{name}.bias"] = torch.randn(shape[1] if transposed else shape[0])
        elif variant == "norm-equiv" and name.endswith("m_res.2"):
            state[name.replace("m_res.2", "sum.alpha")] = torch.rand(1)
    if variant == "norm-equiv":
        state |= {f"res.{scale}.alpha": torch.rand(1) for scale in range(len(WIDTHS))}
    return state


def stack_state(prefix: str, inputs: int, outputs: int, bias: bool, last_bias: bool) -> State:
    state: State = {}
    channels = [inputs, *[6] * (DEPTH - 1), outputs]
    for layer in range(DEPTH):
        state[f"{prefix}.{2 * layer}.weight"] = random(channels[layer + 1], channels[layer], 3, 3)
        if last_bias if layer == DEPTH - 1 else bias:
            state[f"{prefix}.{2 * layer}.bias"] = torch.randn(channels[layer + 1])
    return state


def paper_fdncnn_state(variant: str, blind: bool, channels: int) -> State:
    bias = variant == "ordinary"
    return stack_state("fdncnn", channels + (not blind), channels, bias, last_bias=False)


def kair_drunet_state(channels: int) -> State:
    def rename(name: str) -> str:
        name = name.replace("m_res", "res")
        for scale in range(len(WIDTHS) - 1):
            name = name.replace(f"m_down.{scale}", f"m_down{scale + 1}")
            name = name.replace(f"m_up.{scale}", f"m_up{len(WIDTHS) - 1 - scale}")
        return f"{name}.weight"

    return {rename(name): random(*shape) for name, shape in drunet_layers(channels + 1, channels)}


def kair_drunet(x: Tensor, sigma: float | None, state: State) -> Tensor:
    def conv(x: Tensor, name: str, **options: Any) -> Tensor:
        return F.conv2d(x, state[f"{name}.weight"], **options)

    def block(x: Tensor, name: str) -> Tensor:
        return x + conv(conv(x, f"{name}.res.0", padding=1).relu(), f"{name}.res.2", padding=1)

    x1 = conv(with_map(x, sigma), "m_head", padding=1)
    x2 = conv(block(block(x1, "m_down1.0"), "m_down1.1"), "m_down1.2", stride=2)
    x3 = conv(block(block(x2, "m_down2.0"), "m_down2.1"), "m_down2.2", stride=2)
    x = block(block(x3, "m_body.0"), "m_body.1")
    x = F.conv_transpose2d(x + x3, state["m_up2.0.weight"], stride=2)
    x = block(block(x, "m_up2.1"), "m_up2.2")
    x = F.conv_transpose2d(x + x2, state["m_up1.0.weight"], stride=2)
    x = block(block(x, "m_up1.1"), "m_up1.2")
    return conv(x + x1, "m_tail", padding=1)


def kair_stack(x: Tensor, state: State) -> Tensor:
    for layer in range(DEPTH):
        name = f"model.{2 * layer}"
        x = F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], padding=1)
        x = x.relu() if layer < DEPTH - 1 else x
    return x

"""Networks that weight pixels or features by what they see, for `network_cases.CASES`."""

from __future__ import annotations

import torch
from helpers.network_cases import Of, case, plain
from torch import nn
from torch.nn import functional as F

from normeq.nn import constrain


@case("broken", "proven", ("", "sigmoid", "scale"))
def sigmoid_gate_on_differences():
    def forward(net, x):
        gate = torch.sigmoid(net.squeeze(net.differences(x).mean((2, 3), keepdim=True)))
        return x + net.last(net.differences(x) * gate)

    return Of(
        forward,
        differences=constrain(plain(1, 4, padding_mode="reflect"), 0.0),
        squeeze=plain(4, 4, 1),
        last=plain(4, 1, 1),
    )


@case("proven", "proven")
def attention_by_ratios():
    def forward(net, x):
        tokens = F.pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)
        centered = tokens - tokens.mean((1, 2), keepdim=True)
        size = centered.square().mean((1, 2), keepdim=True).sqrt()
        ratios = centered / torch.where(size == 0, torch.inf, size)
        weights = (net.query(ratios) @ net.key(ratios).mT).softmax(-1)
        mixed = (weights @ tokens).transpose(1, 2).unflatten(2, (x.shape[2] // 2, -1))
        return F.pixel_shuffle(mixed, 2)

    return Of(forward, query=nn.Linear(4, 3), key=nn.Linear(4, 3))


@case("proven", "proven")
def weighted_sum_of_neighbours():
    def forward(net, x):
        padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
        patches = F.unfold(padded, 3)
        distances = (patches - x.flatten(2)).square()
        scale = distances.mean((1, 2), keepdim=True)
        weights = torch.softmax(-distances / torch.where(scale == 0, torch.inf, scale), 1)
        return (weights * patches).sum(1).view_as(x)

    return Of(forward)


@case("broken", "broken", ("mix", "softmax", "scale"))
def multihead_attention():
    def forward(net, x):
        tokens = F.pixel_unshuffle(x, 4).flatten(2).transpose(1, 2)
        mixed = net.mix(tokens, tokens, tokens)[0]
        return F.pixel_shuffle(mixed.transpose(1, 2).unflatten(2, (x.shape[2] // 4, -1)), 4)

    return Of(forward, mix=nn.MultiheadAttention(16, 2, batch_first=True))


@case("broken", "broken", ("", "scaled_dot_product_attention", "scale"))
def fused_attention():
    def forward(net, x):
        tokens = F.pixel_unshuffle(x, 4).flatten(2).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(tokens, tokens, tokens)
        return F.pixel_shuffle(mixed.transpose(1, 2).unflatten(2, (x.shape[2] // 4, -1)), 4)

    return Of(forward)


@case("broken", "proven", ("", "clamp_min", "scale"))
def unit_vectors_with_an_epsilon():
    def forward(net, x):
        y = net.differences(x)
        return x + F.normalize(y, dim=1).sum(1, keepdim=True) * y.std()

    return Of(forward, differences=constrain(plain(1, 4, padding_mode="reflect"), 0.0))


@case("proven", "proven")
def weights_that_are_moved_still_add_up():
    def forward(net, x):
        weights = torch.softmax((x > x.mean()).to(x.dtype), 3)
        both = torch.cat((weights * x, weights.roll(1, 2) * x), 1)
        return both.sum(3)[..., None] + x - x

    return Of(forward)


@case("proven", "broken", ("", "mul", "shift"))
def weighted_features_summed_in_parts():
    def forward(net, x):
        weights = torch.softmax((x > x.mean()).to(x.dtype), 3)
        first, second = (weights * x).chunk(2, 3)
        return first.sum(3) + 2 * second.sum(3)

    return Of(forward)


@case("broken", "proven", ("", "add", "scale"))
def unsupported_operation_on_invariants():
    def forward(net, x):
        above = (x > x.mean()).to(x.dtype)
        return x + torch.special.i0e(above).mean()

    return Of(forward)


@case("unknown", "unknown")
def dynamic_slope():
    return Of(lambda net, x: torch.prelu(x, x.mean().reshape(1)))


def _weights(x):
    """Positive numbers that neither gain nor offset changes, one for each pixel and neighbour."""
    patches = nn.functional.unfold(nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"), 3)
    differences = patches - x.flatten(2)
    return patches, torch.exp(-differences.square() / differences.square().mean())


@case("proven", "proven")
def bilateral_filter():
    def forward(net, x):
        patches, weights = _weights(x)
        return ((weights * patches).sum(1) / weights.sum(1)).reshape(x.shape)

    return Of(forward)


@case("proven", "proven")
def weights_normalised_before_a_product():
    def forward(net, x):
        _, weights = _weights(x)
        square = weights.mT @ weights
        return ((square / square.sum(-1, keepdim=True)) @ x.flatten(2).mT).mT.reshape(x.shape)

    return Of(forward)


@case("proven", "proven")
def gated_mixture():
    def forward(net, x):
        gate = torch.sigmoid((x - x.mean()) / x.std())
        return gate * x + (1 - gate) * x.roll(1, 3)

    return Of(forward)


@case("proven", "broken", ("", "mul", "shift"))
def gates_that_do_not_add_up():
    def forward(net, x):
        gate = torch.sigmoid((x - x.mean()) / x.std())
        return gate * x + gate * x.roll(1, 3)

    return Of(forward)


@case("proven", "proven")
def scaled_and_scaled_back():
    return Of(lambda net, x: (x / x.std() + x.roll(1, 2) / x.std()) / 2 * x.std())


@case("proven", "proven")
def scale_invariant_weights_of_any_degree():
    def forward(net, x):
        weights = (x - x.mean()).abs()  # they scale with the image, which cancels
        return x - x.mean() + (weights * x).sum() / weights.sum()

    return Of(forward)

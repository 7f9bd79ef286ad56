"""Small networks written the way people write them, for `network_cases.CASES`."""

from __future__ import annotations

import torch
from helpers.network_cases import Of, affine, case, plain
from torch import nn
from torch.nn import functional as F

from normeq.nn import SortPool, constrain


@case("proven", "proven")
def identity():
    return nn.Identity()


@case("broken", "proven", ("0", "conv2d", "scale"))
def bias():
    conv = nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect")
    conv.weight.data += (1 - conv.weight.data.sum((1, 2, 3), keepdim=True)) / 9
    return nn.Sequential(conv)


@case("proven", "broken", ("conv", "conv2d", "shift"))
def zero_padding():
    conv = nn.Conv2d(1, 2, 3, padding=1, bias=False)
    conv.weight.data += (1 - conv.weight.data.sum((1, 2, 3), keepdim=True)) / 9
    return Of(lambda net, x: net.conv(x), conv=conv)


@case("proven", "broken", ("", "pad", "shift"))
def zero_padding_by_function():
    return Of(lambda net, x: net.conv(F.pad(x, (1, 1, 1, 1))), conv=affine(1, 2, 1))


@case("proven", "proven")
def copy_padding_by_function():
    def forward(net, x):
        padded = F.pad(F.pad(x, (1, 2, 0, 1), mode="replicate"), (2, 1, 2, 1), mode="circular")
        return net.conv(F.pad(padded, (1, 1, 1, 1), mode="reflect"))[..., 1:-1, 1:-1]

    return Of(forward, conv=affine(1, 2, 1))


@case("proven", "broken", ("1", "relu", "shift"))
def relu_on_affine_features():
    return nn.Sequential(affine(1, 4), nn.ReLU(inplace=True), affine(4, 1))


@case("proven", "broken", ("0", "conv2d", "shift"), ("1", "relu", "shift"))
def bias_free_net():
    return nn.Sequential(plain(1, 4, padding_mode="reflect"), nn.ReLU(), affine(4, 1))


@case("proven", "broken", ("", "leaky_relu", "shift"))
def leaky_relu_by_function():
    return Of(lambda net, x: F.leaky_relu(net.conv(x), 0.1), conv=affine(1, 2))


@case("broken", "broken", ("1", "gelu", "scale"), ("1", "gelu", "shift"))
def gelu():
    return nn.Sequential(affine(1, 4), nn.GELU(), affine(4, 1))


@case("broken", "broken", ("1", "batch_norm", "scale"), ("1", "batch_norm", "shift"))
def batch_norm_in_eval():
    norm = nn.BatchNorm2d(4)
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    return nn.Sequential(affine(1, 4), norm, affine(4, 1)).eval()


@case("broken", "broken", ("1", "batch_norm", "scale"), ("1", "batch_norm", "shift"))
def batch_norm_in_training():
    return nn.Sequential(affine(1, 4), nn.BatchNorm2d(4), affine(4, 1)).train()


@case("broken", "broken", ("norm", "instance_norm", "scale"))
def instance_norm():
    return Of(lambda net, x: net.norm(x), norm=nn.InstanceNorm2d(1))


@case("proven", "broken", ("pool", "avg_pool2d", "shift"))
def average_pool_counting_its_padding():
    return Of(lambda net, x: net.pool(x), pool=nn.AvgPool2d(3, 1, padding=1))


@case("proven", "proven")
def average_pool_not_counting_its_padding():
    pool = nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)
    return Of(lambda net, x: net.pool(x), pool=pool)


@case("proven", "proven")
def interpolations():
    def forward(net, x):
        up = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        up = F.interpolate(up, scale_factor=1.5, mode="bicubic")
        return F.interpolate(F.interpolate(up, size=(17, 19)), scale_factor=0.5, mode="area")

    return Of(forward)


@case("proven", "proven")
def order_statistics():
    def forward(net, x):
        pooled = F.max_pool2d(x, 3, 1, padding=1) + x - x.amin((2, 3), keepdim=True)
        patches = F.unfold(F.pad(pooled, (1, 1, 1, 1), mode="reflect"), 3)
        middle = patches.median(1).values.view_as(x)
        both = torch.cat((middle, x), 1)
        ordered = both.sort(1).values + both.max() - both.topk(1, 1).values
        return net.sort(ordered)

    return Of(forward, sort=SortPool())


@case("proven", "proven")
def in_place_operations():
    def forward(net, x):
        y = net.conv(x).clone()
        y[:, 0] = y[:, 1]
        y[:, 2:].mul_(0.25).add_(0.75 * x)
        y -= y.mean((2, 3), keepdim=True)
        y.relu_()
        return y.add_(x)

    return Of(forward, conv=affine(1, 4))


@case("broken", "proven", ("", "add", "scale"))
def in_place_bias_on_one_channel():
    def forward(net, x):
        y = net.conv(x).clone()
        y[:, 0] += 0.1
        return y

    return Of(forward, conv=affine(1, 3))


@case("proven", "proven")
def alpha_written_out():
    def forward(net, x):
        alpha = torch.sigmoid(net.alpha.weight.squeeze())
        return alpha * net.conv(x) + (1 - alpha) * x

    return Of(forward, conv=affine(1, 1), alpha=nn.Linear(1, 1))


@case("proven", "broken", ("", "add", "shift"))
def additive_residual():
    return Of(lambda net, x: x + net.conv(x), conv=affine(1, 1))


@case("proven", "proven")
def shared_module_and_dense_connections():
    def forward(net, x):
        features = net.first(x)
        for _ in range(2):
            features = torch.cat((features, net.shared(features[:, -4:])), 1)
        return net.last(net.sort(features))

    return Of(forward, first=affine(1, 4), shared=affine(4, 4), sort=SortPool(), last=affine(12, 1))


@case("proven", "proven")
def noise_predictor_on_differences():
    def forward(net, x):
        return x - net.last(F.relu(net.middle(F.relu(net.first(x)))))

    first = constrain(plain(1, 4, padding_mode="replicate"), 0.0)
    return Of(forward, first=first, middle=plain(4, 4), last=plain(4, 1))


@case("broken", "broken", ("first", "conv2d", "scale"), ("first", "conv2d", "shift"))
def dncnn_like():
    def forward(net, x):
        return x - net.last(F.relu(net.first(x)))

    return Of(forward, first=plain(1, 4, bias=True), last=plain(4, 1))


@case("proven", "broken", ("up", "conv_transpose2d", "shift"))
def overlapping_transposed_convolution():
    up = nn.ConvTranspose2d(1, 1, 4, 2, 1, bias=False)
    return Of(lambda net, x: net.up(x), up=up)


@case("broken", "broken", ("", "clamp", "scale"), ("", "clamp", "shift"))
def clipping():
    return Of(lambda net, x: x.clamp(0, 1))


@case("proven", "broken", ("drop", "dropout", "shift"))
def dropout_in_training():
    return Of(lambda net, x: net.drop(x), drop=nn.Dropout(0.5)).train()


@case("broken", "proven", ("", "add", "scale"))
def added_noise():
    return Of(lambda net, x: x + 0.1 * torch.randn_like(x))


@case("unknown", "unknown", ("", "torch.export", "scale"), ("", "torch.export", "shift"))
def control_flow_on_values():
    return Of(lambda net, x: x if x.mean() > 0.5 else 2 * x)


@case("unknown", "unknown", ("", "special_i0e", "scale"), ("", "special_i0e", "shift"))
def unsupported_operation():
    return Of(lambda net, x: x + torch.special.i0e(x))


@case("broken", "broken", ("", "output", "scale"), ("", "output", "shift"))
def constant_output():
    return Of(lambda net, x: torch.ones_like(x))


@case("broken", "broken", ("", "output", "shift"))
def output_of_ratios():
    return Of(lambda net, x: (x - x.mean()) / (x - x.mean()).square().mean().sqrt())


@case("broken", "broken", ("", "pow", "scale"), ("", "pow", "shift"))
def exponent_from_the_image():
    return Of(lambda net, x: x + torch.pow(2.0, x))


@case("broken", "unknown", ("", "fmod", "scale"), ("", "fmod", "shift"))  # 1 modulo more than 1
def remainder_by_the_image():
    return Of(lambda net, x: x + torch.fmod(torch.ones_like(x), 1 + x.square()))


@case("broken", "broken", ("", "div", "scale"), ("", "div", "shift"))
def floored_division():
    return Of(lambda net, x: torch.div(x, 0.1, rounding_mode="floor"))


@case("broken", "broken", ("", "mul", "shift"))
def number_taken_out_of_the_image():
    return Of(lambda net, x: x * x.mean().item())

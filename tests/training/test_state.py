from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator
from helpers.training_runs import short_recipe

from normeq.errors import UsageError
from normeq.training.recipe import NetworkSettings, Optimization
from normeq.training.samples import SampleBatch
from normeq.training.state import State, reconstruction_loss


def batch_of(size: int = 4, overstated: bool = False) -> SampleBatch:
    clean = torch.rand(size, 1, 32, 32)
    level = torch.linspace(0.1, 0.4, size)
    sigma = level.view(-1, 1, 1, 1).expand_as(clean)
    noisy = clean + sigma * torch.randn_like(clean)
    which = torch.full((size,), float(overstated))
    return SampleBatch(noisy, clean, sigma, sigma.expand(-1, 2, -1, -1), level, which)


def fields(batch: SampleBatch) -> list[torch.Tensor]:
    return list(vars(batch).values())


def settings(**fields) -> Optimization:
    return Optimization(steps=1, batch=1, learning_rate=1.0, **fields)


def test_losses_are_means_and_balance_divides_by_a_power_of_the_level():
    empty = torch.zeros(2, 1, 1, 2)
    batch = SampleBatch(empty, empty, empty, empty, torch.tensor([0.1, 0.5]), torch.ones(2))
    output = torch.tensor([[[[1.0, 3.0]]], [[[-2.0, 2.0]]]])
    assert reconstruction_loss(output, batch, settings(loss="l1")) == 2.0
    assert reconstruction_loss(output, batch, settings(loss="mse")) == 4.5
    assert reconstruction_loss(output, batch, settings(balance=1)) == pytest.approx(29.0)
    batch.level[:] = torch.tensor([0.25, 1.0])
    assert reconstruction_loss(output, batch, settings(balance=0.5)) == pytest.approx(7.0)


@pytest.mark.parametrize("channels_last", ["true", "false"])
@pytest.mark.parametrize("variant", ["norm-equiv", "norm-equiv-residual", "ordinary"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_restored_state_takes_the_very_same_steps(optimizer, variant, channels_last):
    recipe = short_recipe(
        f"network.variant={variant}",
        f"optimization.channels_last={channels_last}",
        f"optimization.optimizer={optimizer}",
        "network.size.widths=[8,16]",
    )
    state = State(recipe, Accelerator())
    batches = [batch_of() for _ in range(6)]
    for batch in batches[:3]:
        state.update(batch)
    restored = State(recipe, Accelerator(), saved=state.to_checkpoint())
    for batch in batches[3:]:
        state.update(batch)
        restored.update(batch)
    ours, theirs = state.to_checkpoint(), restored.to_checkpoint()
    assert ours.values == theirs.values
    for name, tensor in ours.tensors.items():
        assert torch.equal(tensor, theirs.tensors[name]), name


@pytest.mark.parametrize("takes_sigma", ["never", "optional", "always"])
@pytest.mark.parametrize("takes_correlation", ["false", "true"])
def test_a_network_is_given_the_maps_that_it_takes(takes_sigma, takes_correlation):
    if takes_sigma == "never" and takes_correlation == "true":
        return
    recipe = short_recipe(
        f"network.takes_sigma={takes_sigma}", f"network.takes_correlation={takes_correlation}"
    )
    given = batch_of().arguments(recipe.network)
    assert len(given) == 1 + (takes_sigma != "never") + (takes_correlation == "true")
    loss, _ = State(recipe, Accelerator()).update(batch_of())
    assert loss.isfinite()


def test_a_network_that_mixes_channels_is_told_one_level_for_all():
    sigma = torch.tensor([3.0, 4.0, 5.0]).reshape(1, 3, 1, 1).expand(2, 3, 8, 8)
    image = torch.rand(2, 3, 8, 8)
    batch = SampleBatch(image, image, sigma, sigma[:, :2], torch.ones(2), torch.ones(2))
    settings = {"architecture": "unet", "variant": "norm-equiv-residual", "channels": 3}
    settings["takes_sigma"] = "optional"
    for separate, expected in ((True, sigma), (False, torch.full((2, 1, 8, 8), (50 / 3) ** 0.5))):
        network = NetworkSettings(**settings, separate_channels=separate)
        torch.testing.assert_close(batch.arguments(network)[1], expected)


def test_told_too_much_a_network_learns_what_it_makes_of_as_much_noise():
    state = State(short_recipe("network.takes_sigma=optional"), Accelerator())
    plain, overstated = batch_of(), batch_of(overstated=True)
    with torch.no_grad():
        lesson = state.judged(overstated.target, overstated.sigma)
    both = SampleBatch(
        *(torch.cat(pair) for pair in zip(fields(plain), fields(overstated), strict=True))
    )
    taught = state.with_lessons(both)
    torch.testing.assert_close(taught.target, torch.cat([plain.target, lesson]))
    assert torch.equal(taught.noisy, both.noisy)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_layout_in_memory_does_not_change_what_is_computed(optimizer):
    common = DOUBLE, f"optimization.optimizer={optimizer}", "network.size.widths=[8,16]"
    states = [
        State(short_recipe(f"optimization.channels_last={on}", *common), Accelerator())
        for on in ("true", "false")
    ]
    for batch in [batch_of() for _ in range(3)]:
        for state in states:
            state.update(state.on_device(batch))
    for one, other in zip(*(state.network.parameters() for state in states), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


DOUBLE = "optimization.dtype=float64"


def test_bfloat16_takes_nearly_the_same_steps_and_keeps_single_precision_weights():
    common = "network.size={widths=[16,16], blocks=1, sort=true}", "optimization.warmup=0"
    states = [
        State(short_recipe(f"optimization.mixed_precision={mode}", *common), Accelerator())
        for mode in ("no", "bf16")
    ]
    losses = [
        [state.update(state.on_device(batch))[0].item() for state in states]
        for batch in [batch_of() for _ in range(4)]
    ]
    for single, half in losses:
        assert half == pytest.approx(single, rel=0.02)
        assert half != single
    assert {p.dtype for p in states[1].network.parameters()} == {torch.float32}


def test_the_step_is_that_of_adam_on_the_clipped_gradient():
    recipe = short_recipe(
        "optimization.clip=1e-3", "optimization.warmup=0", "optimization.schedule=constant", DOUBLE
    )
    state, reference = (State(recipe, Accelerator()) for _ in range(2))
    adam = torch.optim.Adam(reference.network.parameters(), lr=2e-3, betas=(0.9, 0.99))
    for batch in [state.on_device(batch_of()) for _ in range(3)]:
        _, norm = state.update(batch)
        loss = ((reference.network(batch.noisy) - batch.target) ** 2).mean((1, 2, 3)) / batch.level
        adam.zero_grad()
        loss.mean().backward()
        gradients = [p.grad for p in reference.network.parameters()]
        length = torch.cat([g.flatten() for g in gradients]).norm()
        torch.testing.assert_close(norm, length)
        for gradient in gradients:
            gradient.mul_(1e-3 / length)
        adam.step()
    for one, other in zip(state.network.parameters(), reference.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_the_average_follows_the_weights_and_is_what_is_judged():
    state = State(short_recipe("optimization.ema=0.5"), Accelerator())
    expected = [p.detach().clone() for p in state.network.parameters()]
    for step in range(4):
        state.update(batch_of())
        decay = min(0.5, (1 + step) / (10 + step))
        for mean, p in zip(expected, state.network.parameters(), strict=True):
            mean.mul_(decay).add_(p.detach(), alpha=1 - decay)
    assert state.judged is state.average
    for mean, p in zip(expected, state.judged.parameters(), strict=True):
        torch.testing.assert_close(p, mean)


def test_averaging_may_begin_late_and_end_early():
    without = short_recipe("optimization.ema=none")
    state = State(without, Accelerator())
    assert state.judged is state.network
    state.update(batch_of())
    late = State(short_recipe(), Accelerator(), saved=state.to_checkpoint())
    for one, other in zip(late.judged.parameters(), state.network.parameters(), strict=True):
        assert torch.equal(one, other)
    early = State(without, Accelerator(), saved=late.to_checkpoint())
    assert early.step == 1


@pytest.mark.parametrize(("first", "second"), [("adam", "muon"), ("muon", "adam")])
def test_another_optimiser_cannot_be_resumed(first, second):
    ours, theirs = (
        short_recipe(f"optimization.optimizer={name}", "network.size.widths=[8,16]")
        for name in (first, second)
    )
    state = State(ours, Accelerator())
    state.update(batch_of())
    with pytest.raises(UsageError, match=r"optimization\.optimizer"):
        State(theirs, Accelerator(), saved=state.to_checkpoint())


def test_another_network_cannot_be_resumed():
    state = State(short_recipe(), Accelerator())
    other = short_recipe("network.size.blocks=2")
    with pytest.raises(UsageError, match="resume with the same network"):
        State(other, Accelerator(), saved=state.to_checkpoint())

from __future__ import annotations

import os

import pytest
import torch

from normeq.bench.arithmetic import multiply_adds
from normeq.errors import FileError, UsageError
from normeq.training import load_recipe, shipped_recipes
from normeq.training.initial import new_network

# The paper's table of training parameters: batch, patch, loss, halved or not, iterations.
PAPER = {
    ("drunet", "ordinary"): (16, 128, "l1", "halve", 800_000),
    ("drunet", "scale-equiv"): (16, 128, "l1", "halve", 800_000),
    ("drunet", "norm-equiv"): (16, 128, "mse", "constant", 1_800_000),
    ("fdncnn", "ordinary"): (128, 70, "l1", "constant", 500_000),
    ("fdncnn", "scale-equiv"): (128, 70, "l1", "constant", 500_000),
    ("fdncnn", "norm-equiv"): (128, 70, "mse", "constant", 900_000),
}


@pytest.mark.parametrize("blind", [True, False])
@pytest.mark.parametrize(("architecture", "variant"), PAPER)
def test_the_papers_recipes_hold_its_table(architecture, variant, blind):
    suffix = "blind" if blind else "nonblind"
    recipe = load_recipe(f"paper-{architecture}-{variant}-{suffix}")
    settings = recipe.optimization
    batch, patch, loss, schedule, steps = PAPER[architecture, variant]
    assert (settings.batch, recipe.data.patch, settings.loss) == (batch, patch, loss)
    assert (settings.schedule, settings.steps) == (schedule, steps)
    assert (settings.learning_rate, settings.halve_every) == (1e-4, 100_000)
    assert (settings.warmup, settings.decay_steps) == (0, 0)
    assert (settings.clip, settings.ema, settings.balance) == (None, None, 0)
    assert (settings.optimizer, settings.betas) == ("adam", (0.9, 0.999))
    assert recipe.data.noise == "gaussian"
    assert recipe.data.sigma_range == ((25, 25) if blind else (1, 50))
    network = recipe.network
    assert (network.architecture, network.variant) == (architecture, variant)
    assert network.takes_sigma == ("never" if blind else "always")


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_is_valid_and_describes_itself(name):
    recipe = load_recipe(name)
    assert recipe.description
    with torch.device("meta"):
        assert new_network(recipe.network).variant == recipe.network.variant


def test_the_network_for_real_noise_takes_all_maps_within_its_budget():
    stages = [load_recipe(name).network for name in ("default-white", "default-real")]
    assert stages[0].size == stages[1].size
    with torch.device("meta"):
        networks = [new_network(stage) for stage in stages]
    assert networks[1].maps == 3
    assert multiply_adds(new_network(stages[1])) <= 121_000


def test_the_two_first_default_models_are_one_network_with_and_without_a_noise_map():
    blind, told = (load_recipe(name).network for name in ("default-1", "default-1-sigma"))
    assert (blind.takes_sigma, told.takes_sigma) == ("never", "always")
    apart = {"takes_sigma", "init"}
    assert told.model_dump(exclude=apart) == blind.model_dump(exclude=apart)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("data.mixture.tinted=1", "unknown field 'data.mixture.tinted'; allowed here: colored"),
        (
            "data.mixture={colored=0.7, camera=0.4}",
            "the shares colored, camera, stabilised add up to more",
        ),
        ("optimization.stps=3", "unknown field 'optimization.stps'; allowed here: steps, batch"),
        ("steps=3", "unknown field 'steps'; allowed here: description, seed, network"),
        ("network.variant=equal", "'network.variant' is 'equal'; input should be 'ordinary'"),
        ("optimization.loss=l3", "'optimization.loss' is 'l3'; input should be 'l1' or 'mse'"),
        ("optimization.steps=0", "'optimization.steps' is 0"),
        ("optimization.warmup=5000", "warmup 5000 and decay_steps 0 do not fit into 100 steps"),
        ("data.sigma=-1", "'data.sigma' is -1; input should be greater than 0"),
        ("data.sigma=[0, 55]", "'data.sigma' is 0; input should be greater than 0"),
        ("data.sigma=[9, 2]", "the lowest level 9.0 is above the highest, 2.0"),
        ("data.patch", "'data.patch' is not of the form key=value"),
        (
            "seed=100000000000000000000000",
            "'seed' is 100000000000000000000000; input should be less",
        ),
        ("seed.deep.er=1", "'seed'; input should be a valid integer"),
        ("description.x=1", "'description' is not a section"),
    ],
)
def test_a_mistake_gets_a_sentence_with_the_field_and_the_way_out(override, sentence):
    with pytest.raises(UsageError) as caught:
        load_recipe("tiny", [override])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_overrides_are_written_as_in_toml_with_or_without_quotes():
    recipe = load_recipe(
        "tiny",
        ["network.init='a b.safetensors'", "data.noise=laplace", "data.sigma=[1, 2]", "seed=9"],
    )
    assert recipe.network.init == "a b.safetensors"
    assert (recipe.data.noise, recipe.data.sigma_range, recipe.seed) == ("laplace", (1, 2), 9)


def test_what_a_recipe_sets_can_be_taken_away():
    settings = load_recipe("default-real", ["optimization.ema=none", "optimization.clip=none"])
    assert (settings.optimization.ema, settings.optimization.clip) == (None, None)


def test_recipes_are_found_by_path_and_their_faults_named(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(shipped_recipes()["tiny"].read_text())
    assert load_recipe(path) == load_recipe("tiny")
    path.write_text("[network")
    with pytest.raises(FileError, match="is not valid TOML"):
        load_recipe(path)
    path.write_text("[data]\npatch = 8\nsigma = 5")
    with pytest.raises(UsageError, match="lacks the field 'network'"):
        load_recipe(path)
    with pytest.raises(FileError, match=r"neither a readable file nor one of .* default"):
        load_recipe("absent")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("#" * 2**18, "has 262,144 bytes"), ("a = " + "[" * 5000 + "]" * 5000, "is not valid TOML")],
)
def test_huge_and_deeply_nested_recipes_get_a_sentence(text, sentence, tmp_path):
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(FileError, match=sentence):
        load_recipe(tmp_path / "odd.toml")


def test_devices_and_pipes_are_not_recipes(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(FileError, match="neither a readable file"):
        load_recipe(tmp_path / "pipe.toml")


def test_a_deeply_nested_override_gets_a_sentence():
    with pytest.raises(UsageError, match="'seed'"):
        load_recipe("tiny", ["seed=" + "[" * 5000 + "]" * 5000])

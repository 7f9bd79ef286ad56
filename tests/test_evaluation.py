from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.small_networks import tiny
from skimage import data
from typer.testing import CliRunner

import normeq
import normeq.images
from normeq.cli import app
from normeq.errors import UsageError
from normeq.evaluation import evaluate, image_denoiser, means
from normeq.images.folder import Folder

CAMERA = data.camera()[100:164, 200:264]
FOLDER = Folder([CAMERA[None], CAMERA[None, ::-1]], ["one.png", "two.png"])


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    folder = tmp_path / "photographs"
    folder.mkdir()
    for name, image in zip(FOLDER.names, FOLDER.images, strict=True):
        normeq.images.write(folder / name, image[0])
    return folder


def seen_by(sigmas, **options) -> list[np.ndarray]:
    """Collect the noisy images that a denoiser is given."""
    seen = []

    def look(noisy, sigma):
        seen.append(noisy)
        return noisy

    list(evaluate(look, FOLDER, sigmas, **options))
    return seen


def test_noise_depends_on_seed_image_and_level_and_on_nothing_else():
    whole = seen_by([15, 25])
    np.testing.assert_array_equal(seen_by([25])[0], whole[2])
    assert not np.array_equal(seen_by([25], seed=1)[0], whole[2])
    one, two = whole[2] - CAMERA / np.float32(255), whole[3] - CAMERA[::-1] / np.float32(255)
    assert not np.allclose(one, two)
    assert not np.allclose(one / 25, (whole[0] - CAMERA / np.float32(255)) / 15, atol=1e-4)
    assert one.std() == pytest.approx(25 / 255, rel=0.05)


def test_noise_is_neither_clipped_nor_rounded():
    noisy = np.stack(seen_by([100]))
    assert noisy.min() < 0
    assert noisy.max() > 1


def test_scores_are_those_of_the_output():
    truth = [image / np.float32(255) for image in FOLDER.images]
    answers = iter(truth)
    perfect = list(evaluate(lambda noisy, sigma: next(answers), FOLDER, [25]))
    assert [score.psnr for score in perfect] == [float("inf")] * 2
    assert [score.ssim for score in perfect] == pytest.approx([1.0, 1.0])
    idle = list(evaluate(lambda noisy, sigma: noisy, FOLDER, [5, 10]))
    assert [(score.image, score.sigma) for score in idle] == [
        ("one.png", 5),
        ("two.png", 5),
        ("one.png", 10),
        ("two.png", 10),
    ]
    # So little noise seldom leaves [0, 1]: the PSNR is that of its standard deviation.
    expected = [-20 * np.log10(sigma / 255) for sigma in (5, 10)]
    assert [score.psnr for score in means(idle)] == pytest.approx(expected, abs=0.3)


def test_a_level_that_is_no_noise_is_refused():
    with pytest.raises(UsageError, match="sigma is -5"):
        list(evaluate(lambda noisy, sigma: noisy, FOLDER, [-5]))


@pytest.mark.parametrize("variant", ["ordinary", "scale-equiv", "norm-equiv-residual"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("blind", [True, False])
def test_networks_see_black_at_0_and_white_at_1_and_the_level_if_they_take_it(
    tmp_path, variant, channels, blind
):
    net = tiny("unet", variant, blind=blind, channels=channels)
    normeq.save(net, tmp_path / "net.safetensors", {})
    denoiser, told = image_denoiser(str(tmp_path / "net.safetensors"))
    noisy = np.random.default_rng(0).random((channels, 13, 18), np.float32)
    with torch.no_grad():
        batch = torch.from_numpy(noisy)[None]
        expected = (net(batch) if blind else net(batch, 0.1))[0].numpy()
    assert told == channels
    np.testing.assert_allclose(denoiser(noisy, 0.1), expected, atol=1e-5)


def assert_adds(name: str, added: float) -> None:
    """Check what a gray denoiser that is told a level of 0.5 adds to black."""
    denoiser, channels = image_denoiser(name)
    assert channels == 1
    np.testing.assert_allclose(denoiser(np.zeros((1, 4, 5), np.float32), 0.5), added)


def test_networks_of_the_user_get_the_level_if_they_need_it(photographs, tmp_path, monkeypatch):
    (tmp_path / "networks_of_mine.py").write_text(
        "from torch import nn\n"
        "class Told(nn.Module):\n"
        "    channels = 64\n"
        "    def forward(self, x, sigma):\n"
        "        return x + sigma.view(-1, 1, 1, 1)\n"
        "class Blind(nn.Module):\n"
        "    def forward(self, x, depth=1):\n"
        "        return x + depth\n"
        "class Failing(nn.Module):\n"
        "    def forward(self, x):\n"
        "        raise RuntimeError('size 64')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert_adds("networks_of_mine:Told", 0.5)
    assert_adds("networks_of_mine:Blind", 1.0)
    command = ["evaluate", "networks_of_mine:Failing", "--data", str(photographs)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert f"Failing does not take the images of {photographs} (size 64)." in result.stderr


def test_functions_get_the_level_if_they_take_it(tmp_path, monkeypatch):
    (tmp_path / "denoisers_of_mine.py").write_text(
        "def brighter():\n    return lambda image: image + 1\n"
        "def by_level():\n    return lambda image, sigma: image + sigma\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert_adds("denoisers_of_mine:brighter", 1.0)
    assert_adds("denoisers_of_mine:by_level", 0.5)


def test_a_denoiser_may_find_out_about_the_noise_by_itself(tmp_path):
    net = tiny("unet", "norm-equiv-residual", takes_sigma="optional", takes_correlation=True)
    normeq.save(net, tmp_path / "net.safetensors", {})
    noisy = np.random.default_rng(0).random((1, 40, 50), np.float32)
    told, _ = image_denoiser(str(tmp_path / "net.safetensors"))
    alone, _ = image_denoiser(str(tmp_path / "net.safetensors"), "auto")
    assert np.abs(told(noisy, 0.1) - told(noisy, 0.3)).max() > 1e-4
    np.testing.assert_array_equal(alone(noisy, 0.1), alone(noisy, 0.3))

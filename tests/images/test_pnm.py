from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import bands_of, sample
from PIL import Image

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image


@pytest.mark.parametrize(("shape", "extension"), [((9, 12), ".pgm"), ((9, 12, 3), ".ppm")])
def test_pixels_survive(tmp_path: Path, shape: tuple[int, ...], extension: str) -> None:
    image = sample(shape, "uint8")
    path, target = tmp_path / f"in{extension}", tmp_path / f"out{extension}"
    Image.fromarray(image).save(path)
    np.testing.assert_array_equal(images.read(path), image)
    with open_image(path) as source:
        source.write(target, bands_of(source, 4, lambda pixels: 255 - pixels))
    with Image.open(target) as after:
        np.testing.assert_array_equal(np.asarray(after), 255 - image)


def test_sixteen_bits_with_a_largest_value_of_their_own(tmp_path: Path) -> None:
    image = sample((5, 7), "uint16") * 20
    header = b"P5\n# camera 7\n7 5\n4095\n"
    (tmp_path / "in.pgm").write_bytes(header + image.astype(">u2").tobytes())
    np.testing.assert_array_equal(images.read(tmp_path / "in.pgm"), image)
    with open_image(tmp_path / "in.pgm") as source:
        source.write(tmp_path / "out.pgm", bands_of(source, 5, lambda pixels: pixels + 1000))
    assert (tmp_path / "out.pgm").read_bytes().startswith(header)
    after = images.read(tmp_path / "out.pgm")
    np.testing.assert_array_equal(after, np.minimum(image + 1000, 4095))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"P2\n2 2\n255\n1 2 3 4", "convert it to P5"),
        (b"P5\n2 2\n0\n1234", "largest value"),
        (b"P5\n2 2\n99999\n1234", "largest value"),
        (b"P5\n9 9\n255\n1234", "truncated"),
        (b"P5\n#" + b"#" * 9000, "does not start"),
        (b"hello", "does not start"),
    ],
)
def test_damage_is_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "in.pgm").write_bytes(content)
    with pytest.raises((FileError, InputError), match=sentence):
        open_image(tmp_path / "in.pgm")

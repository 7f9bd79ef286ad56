"""The demo in a real browser: an image in, the denoised image out, nothing sent anywhere."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.browser import complaints, running_browser, served
from helpers.exported import network
from PIL import Image

import normeq

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

DOCS = Path(__file__).parents[1] / "docs"
UNET = ("unet", "norm-equiv-residual")
SECONDS = 120
#: The address of the first page, and the requests so far.
Site = tuple[str, list[tuple[str, str]]]
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def demo() -> Any:
    """Return the program that builds the demo."""
    spec = importlib.util.spec_from_file_location("browser_demo", DOCS / "browser_demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(demo: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxscript", reason="the extra 'onnx' is not installed")
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    path = tmp_path_factory.mktemp("site") / "demo"
    missing = demo.write_demo(path, network(*UNET))
    if missing is not None:
        pytest.skip(missing)
    return path


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    with served(folder) as address_and_requests:
        yield address_and_requests


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[WebDriver]:
    with running_browser() as running:
        running.get(site[0])
        yield running


def run(browser: WebDriver, path: Path) -> str:
    """Choose a file, wait for the end, and return what the page says."""
    from selenium.webdriver.common.by import By

    browser.find_element(By.ID, "file").send_keys(str(path))
    return end_of_run(browser)


def drop(browser: WebDriver, path: Path) -> str:
    """Drop a file on the page, wait for the end, and return what the page says."""
    browser.execute_script(
        """
        const file = new File([new Uint8Array(arguments[1])], arguments[0], {type: "image/png"});
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(file);
        for (const kind of ["dragover", "drop"])
          document.body.dispatchEvent(
            new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}));
        """,
        path.name,
        list(path.read_bytes()),
    )
    return end_of_run(browser)


def end_of_run(browser: WebDriver) -> str:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    progress = browser.find_element(By.ID, "progress")
    WebDriverWait(browser, SECONDS).until(lambda _: not progress.is_displayed())
    return browser.find_element(By.ID, "status").text


def result(browser: WebDriver) -> np.ndarray:
    pixels = browser.execute_script("""
        const canvas = document.getElementById("after"), {width, height} = canvas;
        const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
        return [width, height, Array.from(data)];
    """)
    width, height, values = pixels
    return np.array(values, np.uint8).reshape(height, width, 4)


def save(path: Path, pixels: np.ndarray) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def test_an_image_is_denoised_as_python_does(browser: WebDriver, tmp_path: Path) -> None:
    noisy = np.random.default_rng(0).integers(60, 200, (61, 45), np.uint8)
    assert run(browser, save(tmp_path / "a.png", noisy)) == "a.png is denoised: drag the divider."
    expected = normeq.denoise(noisy, model=network(*UNET), noise="gaussian").astype(int)
    found = result(browser).astype(int)
    assert np.abs(found[..., 0] - expected).max() <= 1
    assert (np.abs(found[..., 0] - noisy) > 1).any()
    assert complaints(browser) == []


def test_a_dropped_image_is_denoised_like_a_chosen_one(browser: WebDriver, tmp_path: Path) -> None:
    noisy = np.random.default_rng(2).integers(60, 200, (33, 52), np.uint8)
    path = save(tmp_path / "dropped.png", noisy)
    assert drop(browser, path) == "dropped.png is denoised: drag the divider."
    dropped = result(browser)
    run(browser, path)
    assert dropped.shape == (33, 52, 4)
    np.testing.assert_array_equal(dropped, result(browser))


def test_colours_and_tiles(browser: WebDriver, tmp_path: Path) -> None:
    noisy = np.random.default_rng(1).integers(60, 200, (40, 1090, 3), np.uint8)  # two tiles
    run(browser, save(tmp_path / "b.png", noisy))
    found = result(browser).astype(int)
    for channel in range(3):
        expected = normeq.denoise(noisy[..., channel], model=network(*UNET), noise="gaussian")
        assert np.abs(found[..., channel] - expected.astype(int)).max() <= 1
    assert (found[..., 3] == 255).all()
    assert complaints(browser) == []


def test_the_divider_shows_more_of_one_side(browser: WebDriver, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    run(browser, save(tmp_path / "c.png", np.full((20, 30), 7, np.uint8)))
    divider = browser.find_element(By.ID, "divider")
    before = browser.find_element(By.ID, "line").get_attribute("style")
    divider.send_keys(Keys.HOME)
    assert browser.find_element(By.ID, "line").get_attribute("style") != before
    assert (result(browser)[..., :3] == 7).all()


def test_a_run_can_be_cancelled(browser: WebDriver, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    large = save(tmp_path / "large.png", np.eye(2000, 3000, dtype=np.uint8))
    browser.find_element(By.ID, "file").send_keys(str(large))
    status = browser.find_element(By.ID, "status")
    WebDriverWait(browser, SECONDS, 0.05).until(lambda _: status.text.startswith("Denoising"))
    browser.find_element(By.ID, "cancel").click()
    assert status.text == "Cancelled."
    assert not browser.find_element(By.ID, "result").is_displayed()
    assert "is denoised" in run(browser, save(tmp_path / "g.png", np.eye(8, dtype=np.uint8)))


def test_a_file_that_is_not_a_picture_is_a_sentence(browser: WebDriver, tmp_path: Path) -> None:
    (tmp_path / "d.png").write_text("not a picture")
    assert "d.png is not a picture that your browser can read" in run(browser, tmp_path / "d.png")


def test_nothing_is_sent(browser: WebDriver, site: Site, tmp_path: Path) -> None:
    run(browser, save(tmp_path / "e.png", np.eye(16, dtype=np.uint8)))
    assert {command for command, _ in site[1]} == {"GET"}
    assert not any("e.png" in path for _, path in site[1])
    names = browser.execute_script("return performance.getEntries().map(entry => entry.name)")
    home = site[0].rpartition("/")[0]
    assert all(n.startswith((home, "blob:")) for n in names if "://" in n or "blob:" in n)


def test_a_page_without_its_files_says_so(browser: WebDriver, site: Site, tmp_path: Path) -> None:
    with served(DOCS / "demo_page") as (bare, _):
        browser.get(bare)
        said = run(browser, save(tmp_path / "f.png", np.eye(16, dtype=np.uint8)))
    assert "this page was built without its files" in said
    complaints(browser)
    browser.get(site[0])


def test_without_npm_a_sentence_says_what_is_missing(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    missing = demo._copy_runtime(tmp_path / "ort")
    assert missing == "the demo has no onnxruntime-web: npm, which fetches it, is not installed"

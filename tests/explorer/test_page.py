"""The page in a browser, used as a person uses it."""

from __future__ import annotations

import base64
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tifffile
from helpers.browser import complaints
from PIL import Image

import normeq
from normeq.explorer.serving import PageServer
from normeq.images import open_image

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.xdist_group("browser")
COMPUTED = "Everything in view is computed."


@contextmanager
def served(path: Path, model: Path) -> Iterator[str]:
    """Serve the page of an image by another thread, and give its address."""
    with open_image(path) as image, PageServer(image, model=str(model)) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server.address
        finally:
            server.stop()
            thread.join()


class Page:
    """What a person sees and does."""

    def __init__(self, browser: WebDriver) -> None:
        self.browser = browser

    def __getitem__(self, name: str) -> WebElement:
        return self.browser.find_element(By.ID, name)

    def wait(self, what: Callable[[], Any]) -> Any:
        return WebDriverWait(self.browser, 60, 0.05).until(lambda _: what())

    def open(self, address: str) -> None:
        self.browser.get(address)
        self.computed()

    def computed(self) -> None:
        self.wait(lambda: self["status"].text == COMPUTED)

    def picture(self) -> str:
        """Return the pixels that are drawn."""
        found: str = self.browser.execute_script(
            "return document.getElementById('canvas').toDataURL()"
        )
        return found

    def grey(self) -> np.ndarray:
        """Return the grey levels that are drawn."""
        png = base64.b64decode(self.picture().partition(",")[2])
        return np.asarray(Image.open(io.BytesIO(png)).convert("L"), float)

    def show(self, mode: str) -> None:
        """Choose what is shown, by the label that people click on."""
        radio = self.browser.find_element(By.CSS_SELECTOR, f"input[value={mode}]")
        radio.find_element(By.XPATH, "..").click()
        self.computed()

    @property
    def split(self) -> int:
        return int(self["divider"].get_attribute("aria-valuenow"))


@pytest.fixture(scope="module")
def address(stack: Path, weights: Path) -> Iterator[str]:
    with served(stack, weights) as address:
        yield address


@pytest.fixture
def page(browser: WebDriver, address: str) -> Iterator[Page]:
    page = Page(browser)
    page.open(address)
    yield page
    assert complaints(browser) == []


def test_the_page_says_what_the_image_is(page: Page) -> None:
    assert page["title"].text == "stack.tif"
    assert page["facts"].text == "3 Z × 400 × 400, uint16"
    page.wait(lambda: "Noise: uniform, sigma 1" in page["noise"].text)
    assert not page["failure"].is_displayed()


def test_the_four_views_differ(page: Page) -> None:
    pictures = set()
    for mode in ("compare", "input", "twin", "removed"):
        page.show(mode)
        pictures.add(page.picture())
        assert page["divider"].is_displayed() == (mode == "compare")
    assert len(pictures) == 4
    assert "grey is 0, black and white ±" in page["shown-range"].text


def test_the_divider_is_dragged_and_moved_by_keys(page: Page) -> None:
    before = page.picture()
    drag = ActionChains(page.browser).click_and_hold(page["divider"]).move_by_offset(-150, 0)
    drag.release().perform()
    assert 20 < page.split < 45
    assert page.picture() != before
    dragged = page.split
    page["divider"].send_keys(Keys.ARROW_RIGHT)
    assert page.split == dragged + 2
    page["divider"].send_keys(Keys.HOME)
    assert page.split == 0


def test_a_hovered_pixel_shows_its_values_and_its_filter(page: Page) -> None:
    ActionChains(page.browser).move_to_element_with_offset(page["viewer"], 60, 40).perform()
    page.wait(lambda: page["filter-sum"].text == "1.0000")
    assert float(page["filter-pixels"].text) > 0
    assert page["readout"].text.startswith("row ")
    assert "→" in page["readout"].text
    assert "…" not in page["readout"].text
    assert "weights sum to 1.0000" in page["filter"].get_attribute("aria-label")


def test_sliders_change_the_units_and_the_output_follows_or_not(page: Page) -> None:
    page.show("twin")
    shown, own = page["shown-range"].text, page.grey()
    page["gain"].send_keys(Keys.ARROW_LEFT * 20)
    page["offset"].send_keys(Keys.ARROW_RIGHT * 4)
    page.wait(lambda: page["follows"].text.startswith("The output follows"))
    page.computed()
    assert "largest error" in page["follows"].text
    assert page["gain-text"].text == "× 0.1"
    assert page["shown-range"].text != shown
    assert np.abs(page.grey() - own).max() <= 1
    page["ordinary"].find_element(By.XPATH, "..").click()
    page.wait(lambda: page["follows"].text.startswith("The output does not follow"))
    page.wait(lambda: "is black and" in page["noise"].text)
    page.computed()
    assert Select(page["model"]).first_selected_option.get_attribute("value") == "ordinary"
    broken = page.grey()
    page["reset-units"].click()
    page.wait(lambda: page["follows"].text.startswith("Move a slider"))
    page.computed()
    assert np.abs(page.grey() - broken).mean() > 4
    assert page["gain-text"].text == "× 1"


def test_another_model_and_a_stated_level(page: Page) -> None:
    page.show("twin")
    before = page.picture()
    Select(page["model"]).select_by_value("gaussian_filter")
    page.wait(lambda: "Denoised by gaussian_filter" in page["noise"].text)
    page.computed()
    assert page.picture() != before
    page["sigma"].send_keys("120", Keys.TAB)
    page.wait(lambda: "gaussian_filter is blind" in page["message-text"].text)
    page["message-close"].click()
    while complaints(page.browser):  # the browser notes the answer 400 for every tile
        time.sleep(2)
    assert not page["message"].is_displayed()  # once closed, it is not said again


def test_planes_are_chosen_by_a_slider(page: Page) -> None:
    page.show("input")
    before = page.picture()
    slider = page.browser.find_element(By.CSS_SELECTOR, "#planes input")
    slider.send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.picture() != before)
    page.computed()
    assert slider.get_attribute("aria-valuetext") == "Depth 2 of 3"


def test_everything_works_by_keyboard(page: Page) -> None:
    page["viewer"].send_keys("1")
    assert page["zoom-level"].text == "100 %"
    before = page.picture()
    page["viewer"].send_keys(Keys.ARROW_RIGHT)
    assert page.picture() != before
    page["viewer"].send_keys("+")
    assert page["zoom-level"].text == "125 %"
    page["viewer"].send_keys(Keys.ENTER)
    page.wait(lambda: page["filter-sum"].text == "1.0000")
    page["pixel-row"].clear()
    page["pixel-row"].send_keys("7")
    page["pixel-column"].clear()
    page["pixel-column"].send_keys("9", Keys.ENTER)
    page.wait(lambda: page["filter-place"].text == "7, 9")
    page["viewer"].send_keys("0")
    page.computed()


def test_a_screen_reader_finds_a_name_for_everything(page: Page) -> None:
    found = page.browser.find_elements(
        By.CSS_SELECTOR, "button, input, select, canvas[role], [tabindex]"
    )
    reached = [each for each in found if each.rect["width"] > 0]
    assert len(reached) > 20
    nameless = [each.get_attribute("outerHTML") for each in reached if not each.accessible_name]
    assert nameless == []
    assert page["divider"].aria_role == "slider"
    assert page["ordinary"].aria_role == "switch"
    assert page["status"].get_attribute("aria-live") == "polite"


def test_the_wheel_zooms_at_the_pointer_and_a_drag_moves(page: Page) -> None:
    before = page["zoom-level"].text
    origin = page["viewer"]
    page.browser.execute_script(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -120, clientX: 300, "
        "clientY: 300, cancelable: true}))",
        origin,
    )
    assert page["zoom-level"].text != before
    pixels = page.picture()
    moves = ActionChains(page.browser).move_to_element_with_offset(origin, 100, 100)
    moves.click_and_hold().move_by_offset(-60, -30).release().perform()
    assert page.picture() != pixels


def test_the_result_is_downloaded_in_the_format_of_the_input(
    page: Page, stack: Path, weights: Path, tmp_path: Path
) -> None:
    page.browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    page["download"].click()
    file = tmp_path / "stack.denoised.tif"
    page.wait(file.exists)
    assert page.wait(lambda: page["download-text"].text).startswith("Done: 3 planes in")
    [outcome] = normeq.denoise_files(stack, tmp_path / "own", model=str(weights))
    assert np.array_equal(tifffile.imread(file), tifffile.imread(outcome.output))


def test_only_what_is_in_view_of_a_large_image_is_computed(
    browser: WebDriver, weights: Path, tmp_path: Path
) -> None:
    waves = np.sin(np.arange(4000) / 30)
    np.save(tmp_path / "large.npy", (500 + 90 * np.outer(waves, waves)).astype(np.uint16))
    with served(tmp_path / "large.npy", weights) as address:
        page = Page(browser)
        page.open(address)
        assert page["zoom-level"].text == "100 %"
        asked = browser.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        twins = [name for name in asked if "of=twin" in name]
        assert 4 <= len(twins) <= 12  # of 121
        page.show("input")
        page["zoom-fit"].click()
        page.computed()
        browser.get("about:blank")
    assert complaints(browser) == []


def test_a_file_that_cannot_be_read_has_a_page_that_says_so(
    browser: WebDriver, weights: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.tif"
    tifffile.imwrite(path, np.zeros((300, 300), np.uint16), compression="zlib")
    path.write_bytes(path.read_bytes()[:-200] + bytes(200))
    with served(path, weights) as address:
        page = Page(browser)
        browser.get(address)
        said = page.wait(lambda: page["failure-text"].text)
        assert "cut.tif" in said
        assert page["failure"].is_displayed()
        assert not page["page"].is_displayed()
        browser.get("about:blank")
    complaints(browser)  # the browser notes the answer 422

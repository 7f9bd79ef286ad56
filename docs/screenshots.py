"""The pictures of explore.md and export.md: two pages in headless Chromium.

PYTHONPATH=tests python docs/screenshots.py
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np
from browser_demo import write_demo
from helpers.browser import running_browser, served
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from normeq._support.photograph import sample_photograph
from normeq.explorer.serving import PageServer
from normeq.images import open_image, write

FIGURES = Path(__file__).parent / "figures"
PATIENCE = 600


def noisy_photograph(folder: Path) -> Path:
    """Write a photograph in counts, with an offset and noise as a camera has."""
    counts = 400 + 2000 * sample_photograph()
    noise = np.random.default_rng(0).normal(0, 200, counts.shape)
    write(folder / "camera.tif", np.clip(counts + noise, 0, None).round().astype(np.uint16))
    return folder / "camera.tif"


def take_picture_of_explorer(address: str, target: Path) -> None:
    """Open a page, change its units, point at a pixel, and save what is seen."""
    with running_browser(1440, 1083) as browser:

        def text(name: str) -> str:
            return browser.find_element(By.ID, name).text

        def wait(name: str, wanted: str) -> None:
            WebDriverWait(browser, PATIENCE).until(lambda _: wanted in text(name))

        browser.get(address)
        wait("status", "Everything in view")
        browser.find_element(By.ID, "gain").send_keys(Keys.ARROW_LEFT * 20)
        browser.find_element(By.ID, "offset").send_keys(Keys.ARROW_RIGHT * 12)
        wait("follows", "The output follows")
        wait("status", "Everything in view")
        viewer = browser.find_element(By.ID, "viewer")
        ActionChains(browser).move_to_element_with_offset(viewer, 145, -47).perform()
        wait("filter-sum", "1.0000")
        browser.execute_script("document.activeElement.blur()")
        browser.save_screenshot(str(target))


def take_picture_of_demo(address: str, target: Path) -> None:
    """Denoise the sample of the demo, and save what is seen."""
    with running_browser(1280, 1080) as browser:
        browser.get(address)
        browser.find_element(By.ID, "sample").click()
        status = browser.find_element(By.ID, "status")
        WebDriverWait(browser, PATIENCE).until(lambda _: "is denoised" in status.text)
        divider = browser.find_element(By.ID, "divider")
        browser.execute_script("document.body.style.overflow = 'hidden'")
        browser.execute_script("arguments[0].scrollIntoView(false)", divider)
        browser.save_screenshot(str(target))


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        path = noisy_photograph(Path(folder))
        with open_image(path) as image, PageServer(image) as server:
            thread = threading.Thread(target=server.run)
            thread.start()
            try:
                take_picture_of_explorer(server.address, FIGURES / "explore.png")
            finally:
                server.stop()
                thread.join()
        site = Path(folder) / "demo"
        missing = write_demo(site)
        if missing is not None:
            raise SystemExit(missing)
        with served(site) as (address, _):
            take_picture_of_demo(address, FIGURES / "browser-demo.png")


if __name__ == "__main__":
    main()

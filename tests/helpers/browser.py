"""A browser without a window, driven as a person drives it, and a server of files for it."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # small in containers, where a large page would crash
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def running_browser(width: int = 1280, height: int = 860) -> Iterator[WebDriver]:
    """Start Chromium, and end it after use; skip the test where it is not installed.

    Parameters
    ----------
    width, height
        Size of the window in pixels.
    """
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium and chromedriver are not installed")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    options.add_argument(f"--window-size={width},{height}")
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    browser = selenium.Chrome(options=options, service=service)
    try:
        yield browser
    finally:
        browser.quit()


def complaints(browser: WebDriver) -> list[str]:
    """Return the errors and warnings on the console since the last call."""
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


class _Recorder(http.server.SimpleHTTPRequestHandler):
    """A server of files that keeps what it was asked for."""

    def __init__(self, asked: list[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        self.asked = asked
        super().__init__(*args, **kwargs)

    def log_request(self, *_: object) -> None:
        self.asked.append((self.command, self.path))


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve a folder; yield the address of its first page, and a list that grows by each request.

    Parameters
    ----------
    folder
        A folder with `index.html`.
    """
    asked: list[tuple[str, str]] = []
    handler = functools.partial(_Recorder, asked, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html", asked
        finally:
            server.shutdown()
            thread.join()

"""Chromium without a screen, for tests of pages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
_CONTRAST = Path(__file__).with_name("contrast.js")
_READY = "return document.documentElement.dataset.ready === 'yes'"


def missing() -> str:
    """Return what this machine lacks to run pages in a browser; "" for nothing."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    if shutil.which("chromedriver") is None:
        return "chromedriver is not on the path"
    return "" if any(map(shutil.which, _CHROMIUMS)) else "Chromium is not on the path"


class Browser:
    """A browser with pages of this machine."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    @property
    def name(self) -> str:
        """The browser and its version."""
        return f"{self.driver.capabilities['browserName']} {self.driver.capabilities['browserVersion']}, without a screen or a GPU"

    def open(self, path: Path, place: str = "", *, seconds: float = 60) -> None:
        """Open a page, at a place of it, and wait until its script has begun."""
        self.driver.get("about:blank")
        self.driver.get(path.resolve().as_uri() + (f"#{place}" if place else ""))
        until = time.monotonic() + seconds
        while not self.run(_READY):
            assert time.monotonic() < until, f"the page was not ready in {seconds} s: {self.log()}"
            time.sleep(0.01)

    def run(self, script: str, *given: object) -> Any:
        """Run a script in the page and return what it returns."""
        return self.driver.execute_script(script, *given)

    def press(self, key: str) -> None:
        """Press a key on the page."""
        self.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def faint_text(self) -> list[str]:
        """Return the texts of the page whose contrast is too low to be read by all, with what is below them."""
        judged, faint = self.run(_CONTRAST.read_text(encoding="utf-8"))
        assert judged > 0, "no text was found"
        return list(faint)

    def log(self) -> list[str]:
        """Return what the console has been given since the last call."""
        return [row["message"] for row in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that pages asked for since the last call."""
        rows = [row["message"] for row in self.driver.get_log("performance")]
        return [row.partition('"url":"')[2].partition('"')[0] for row in rows if '"Network.requestWillBeSent"' in row]


@contextmanager
def open_browser(*, is_dark: bool = False, scripts: bool = True, width: int = 1520) -> Iterator[Browser]:
    """Start a browser and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for switch in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking", f"window-size={width},1600",
                   f"blink-settings=preferredColorScheme={0 if is_dark else 1}"):
        options.add_argument(f"--{switch}")
    if not scripts:
        options.add_experimental_option("prefs", {"webkit.webprefs.javascript_enabled": False,
                                                  "profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.binary_location = next(filter(None, map(shutil.which, _CHROMIUMS)), "")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    try:
        yield Browser(driver)
    finally:
        driver.quit()

"""A real headless browser: Chromium, driven by Selenium. Tests skip when one of them is not installed."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains

_NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), "")
DRIVER = shutil.which("chromedriver") or ""
MISSING = "" if BROWSER and DRIVER else "chromium and chromedriver are not there (Debian: chromium, chromium-driver)"
# The accessibility checker is not part of the project: `npm install --prefix .venv-axe axe-core` installs it.
AXE = Path(os.environ.get("RECONCILER_AXE", ".venv-axe/node_modules/axe-core/axe.min.js"))
_FLAGS = ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu", "--no-first-run")


class Tab:
    """One browser tab that shows files. It stores the log of its page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver
        self.find, self.run = driver.find_elements, driver.execute_script

    def show(self, page: Path, width: int = 1280, *, dark: bool = False, paper: bool = False) -> None:
        """Show a page in a window of the given width, in light or dark mode, or as print media."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._format_violation("Emulation.setEmulatedMedia", features=[scheme], media="print" if paper else "screen")
        self._format_violation(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self._driver.get("about:blank")
        self._driver.get(page.as_uri())

    def log(self) -> list[str]:
        """Return the log entries since the last call: errors and violations of the content security policy."""
        return [item["message"] for item in self._driver.get_log("browser")]

    def press(self, *keys: str) -> None:
        """Press keys in sequence on the focused element."""
        chain = ActionChains(self._driver, duration=0)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def press_with(self, held: str, key: str) -> None:
        """Press a key while another key is held."""
        ActionChains(self._driver, duration=0).key_down(held).send_keys(key).key_up(held).perform()

    def print(self) -> bytes:
        """Return the printed page as PDF."""
        return b64decode(self._format_violation("Page.printToPDF", preferCSSPageSize=True)["data"])

    def check_accessibility(self) -> list[str]:
        """Return the violations that axe-core reports for the page."""
        self.run(AXE.read_text())
        text = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
        result = self._driver.execute_async_script(text)
        return [
            f"{violation['id']}: {node['html']}" for violation in result["violations"] for node in violation["nodes"]
        ]

    def _format_violation(self, command: str, **what: Any) -> Any:
        return self._driver.execute_cdp_cmd(command, what)


@contextmanager
def open_tab(profile: Path) -> Iterator[Tab]:
    """Start a browser with an empty profile and stop it at the end."""
    options = Options()
    options.binary_location = BROWSER
    # Chromium does not run its sandbox as root. The tests show only local pages.
    cage = ["--no-sandbox"] if os.geteuid() == 0 else []
    for flag in (*_FLAGS, *cage, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Tab(driver)
    finally:
        driver.quit()

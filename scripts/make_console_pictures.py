"""Write docs/images/console-*.png: pages of the console of the demo.

    python scripts/make_console_pictures.py            writes each picture whose page has changed
    python scripts/make_console_pictures.py --check    exit 1 if a page has changed

The script needs Chromium, chromedriver and Selenium (`pip install selenium`). All ages on the pages are fixed, so that
a picture changes only with its page.

Two machines draw the same text with slightly different pixels. Therefore, the script compares the mean colors of
squares of 20 pixels, and accepts a difference of 1 % of the squares. Other fonts have other widths and other line
breaks. With other fonts than those of the pictures, `--check` compares nothing, and its exit status is 3.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "images"
FONTS_FILE = FOLDER / "console-fonts.txt"
OTHER_FONTS = 3
MAX_DIFFERENCE = 0.01
FLAGS = ("--headless=new", "--hide-scrollbars", "--disable-gpu", "--no-first-run", "--no-sandbox")
# The demo creates its drafts when the script runs. The script of the page does not change absolute times.
FIX_TIMES = """
for (const time of document.querySelectorAll("time")) {
  time.dataset.absolute = "";
  time.textContent = "2 min ago";
}
"""
# The width of a text in the fonts of the page identifies the fonts.
MEASURE_FONTS = """
const context = document.createElement("canvas").getContext("2d");
return ["h1", "code"].map((name) => {
  const {fontFamily} = getComputedStyle(document.querySelector(name));
  context.font = `100px ${fontFamily}`;
  return `${name} ${Math.round(context.measureText("PackageVariantSet default/gateway 0123456789").width / 10)}`;
}).join("\\n");
"""
COMPARE = """
const [first, second, done] = arguments, size = 20, limit = 16;
async function read(data) {
  const image = new Image();
  image.src = `data:image/png;base64,${data}`;
  await image.decode();
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const {data: pixels} = context.getImageData(0, 0, image.width, image.height);
  const columns = Math.ceil(image.width / size), rows = Math.ceil(image.height / size);
  const sums = new Float64Array(columns * rows * 3), counts = new Float64Array(columns * rows);
  for (let y = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++) {
      const square = Math.floor(y / size) * columns + Math.floor(x / size), pixel = (y * image.width + x) * 4;
      counts[square]++;
      for (let color = 0; color < 3; color++) sums[square * 3 + color] += pixels[pixel + color];
    }
  }
  const colors = sums.map((sum, index) => sum / counts[Math.floor(index / 3)]);
  return {size: `${image.width}x${image.height}`, colors};
}
Promise.all([read(first), read(second)]).then(([one, other]) => {
  if (one.size !== other.size) return done(1);
  const squares = one.colors.length / 3;
  let different = 0;
  for (let square = 0; square < squares; square++) {
    different += [0, 1, 2].some((color) => {
      const index = square * 3 + color;
      return Math.abs(one.colors[index] - other.colors[index]) > limit;
    });
  }
  done(different / squares);
});
"""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Picture:
    """A picture of the upper part of a page."""

    page: str
    width: int
    height: int
    is_dark: bool = False


PICTURES = {
    "fleet": Picture("fleet", 1280, 700),
    "fleet-dark": Picture("fleet", 1280, 700, is_dark=True),
    "change": Picture("change", 1280, 980),
    "change-phone": Picture("change", 360, 780),
}


@contextmanager
def serve_demo(folder: Path) -> Iterator[str]:
    """Run the demo with its console, and yield the address."""
    environment = {
        "PYTHONPATH": str(PROJECT), "HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "demo", "--serve", "demo"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        yield next(match[0] for line in process.stdout if (match := ADDRESS.search(line)))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """Start a browser without a window."""
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    try:
        yield driver
    finally:
        driver.quit()


def find_pages(driver: webdriver.Chrome, address: str) -> Mapping[str, str]:
    """Wait until the console of the demo is complete, and return the URLs of the pages by name."""
    driver.implicitly_wait(60)
    driver.get(f"{address}/changes")
    # The index of the demo is complete when a change is listed.
    while not (links := driver.find_elements(By.LINK_TEXT, "install gateway v1")):
        driver.refresh()
    return {"fleet": address, "change": str(links[0].get_attribute("href"))}


def take_picture(driver: webdriver.Chrome, url: str, picture: Picture) -> bytes:
    """Return the visible part of a page as PNG."""
    size = {"width": picture.width, "height": picture.height, "deviceScaleFactor": 1, "mobile": picture.width < 500}
    scheme = {"name": "prefers-color-scheme", "value": "dark" if picture.is_dark else "light"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get(url)
    driver.execute_script(FIX_TIMES)
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
    return base64.b64decode(shot["data"])


def compare_pictures(driver: webdriver.Chrome, first: bytes, second: bytes) -> float:
    """Return the share of squares with different mean colors. It is 1 if the sizes of the pictures differ."""
    driver.get("about:blank")
    texts = [base64.b64encode(data).decode() for data in (first, second)]
    return float(driver.execute_async_script(COMPARE, *texts))


def list_changed(driver: webdriver.Chrome, pictures: Mapping[str, bytes]) -> Mapping[str, float]:
    """Return the difference of each picture that differs from its file, by name."""
    files = {name: FOLDER / f"console-{name}.png" for name in pictures}
    differences = {
        name: compare_pictures(driver, files[name].read_bytes(), data) if files[name].exists() else 1.0
        for name, data in pictures.items()
    }
    return {name: difference for name, difference in differences.items() if difference > MAX_DIFFERENCE}


def main(arguments: list[str]) -> int:
    """Write or check the pictures, and return the exit status."""
    with tempfile.TemporaryDirectory() as folder, serve_demo(Path(folder)) as address, open_browser() as driver:
        pages = find_pages(driver, address)
        pictures = {name: take_picture(driver, pages[item.page], item) for name, item in PICTURES.items()}
        fonts = f"{driver.execute_script(MEASURE_FONTS)}\n"
        has_other_fonts = not FONTS_FILE.exists() or FONTS_FILE.read_text() != fonts
        if "--check" in arguments and has_other_fonts:
            print("the browser has other fonts than the pictures", file=sys.stderr)
            return OTHER_FONTS
        changed = dict.fromkeys(pictures, 1.0) if has_other_fonts else list_changed(driver, pictures)
    for name, difference in changed.items():
        print(f"docs/images/console-{name}.png: {difference:.1%} of the picture differs", file=sys.stderr)
    if "--check" in arguments:
        return int(bool(changed))
    for name in changed:
        (FOLDER / f"console-{name}.png").write_bytes(pictures[name])
    FONTS_FILE.write_text(fonts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Pages of a training, a scaling study and a search in headless Chromium: report_browser_test.py PROGRAMS

A page loads nothing, breaks no rule of its own, is drawn as it is written, and follows the reader's scheme of colours.
Skipped (77) where there is no Chromium, or no Pillow.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    from PIL import Image
except ImportError:
    print("skipped: no Pillow here (Debian package python3-pil)")
    sys.exit(77)

BACKGROUNDS = {"light": (255, 255, 255), "dark": (0x14, 0x18, 0x1d)}


def browse(browser, folder, page, *options):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
               f"--user-data-dir={folder}/profile", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line or "Refused to" in line]
    assert not complaints, complaints
    return done.stdout


def run(programs, name, *words):
    subprocess.run([f"{programs}/{name}", *words], check=True, stdout=subprocess.DEVNULL)


def training_page(programs, folder):
    run(programs, "make_shards", "synthetic", "--samples", "400", "--output", folder / "data")
    run(programs, "train_cifar", "--data", folder / "data", "--model", "lenet", "--epochs", "3", "--threads", "1",
        "--report-every", "1", "--output", folder / "run", "--note", "<script>document.title = 'changed'</script>")
    run(programs, "report", folder / "run", "--data", folder / "data", "--threads", "1", "--output", folder / "page.html")
    return folder / "page.html"


def study_page(programs, folder):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", f"{programs}/scaling_study", "--model", "lenet",
               "--seconds", "0.1", "--repeats", "3", "--output", folder / "study"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "study" / "report.html"


def search_page(programs, folder):
    """Of a journal as after a search, with text that would be markup."""
    space = {"program": "train_cifar", "arguments": "--data data", "name": "<script>document.title = 'changed'</script>",
             "searcher": {"name": "random", "metric": "test-accuracy", "max_length": {"epochs": "4"}, "max_trials": "12"},
             "hyperparameters": {"lr": {"type": "log", "minval": "-3", "maxval": "0"}, "note": {
                 "type": "categorical", "vals": ["<img src=x onerror=alert(1)>", "</style><script>alert(2)</script>"]}}}
    orders = [{"trial": trial, "rung": 1, "length": 4, "settings": [
        f"--lr={10 ** (-trial / 4)}", f"--note={space['hyperparameters']['note']['vals'][trial % 2]}"]} for trial in range(1, 13)]
    results = [{"trial": trial, "rung": 1, "steps": 40, "metric": 0.9 - 0.05 * trial, "orders": []} for trial in range(1, 12)]
    failure = {"trial": 12, "rung": 1, "code": 79, "reason": "<b>not finite</b>", "orders": []}
    (folder / "search").mkdir()
    lines = [{"search": 1, "space": space, "orders": orders}, *results, failure]
    (folder / "search" / "search.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(programs, "search", "--report", folder / "search")
    return folder / "search" / "search.html"


def look_at(browser, folder, page, title, elements):
    written = page.read_text()
    drawn = browse(browser, folder, page, "--dump-dom")
    for element in elements:
        wanted, found = (len(re.findall(rf"<{element}\b", text)) for text in (written, drawn))
        assert wanted == found > 0, (element, wanted, found)
    assert f"<title>{title}</title>" in drawn, title
    for scheme, background in BACKGROUNDS.items():
        for width in (500, 1000, 1400, 1600):
            picture = folder / f"{scheme}-{width}.png"
            browse(browser, folder, page, f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
                   f"--window-size={width},1200", f"--screenshot={picture}")
            with Image.open(picture) as image:
                pixels = image.convert("RGB")
                assert pixels.getpixel((2, 2)) == background, (scheme, pixels.getpixel((2, 2)))
                assert len(pixels.getcolors(1 << 20)) > 50, "nothing is drawn"
                right_half = pixels.crop((width // 2, 0, width, 1200))
                assert len(right_half.getcolors(1 << 20)) > 20, "the right half is empty"


def main(programs):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium here")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        look_at(browser, folder, training_page(programs, folder), "Training of lenet on synthetic",
                ("polyline", "circle", "rect", "path", "table", "img", "figure"))
        look_at(browser, folder, study_page(programs, folder), "Scaling of lenet up to 2 ranks",
                ("polyline", "circle", "rect", "table", "figure"))
        look_at(browser, folder, search_page(programs, folder), "Search of train_cifar",
                ("polyline", "circle", "rect", "table", "figure"))
    print("the pages are drawn as they are written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

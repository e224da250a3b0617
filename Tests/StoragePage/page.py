#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Looks at the page of 'insula storage --html' with a stranger's eyes.

page.py FILE            the page alone: well-formed, complete in itself, names for whoever does not see, contrast
page.py --browser FILE  the same, and in Chromium: both colour schemes, keyboard, the tree of accessible names

It prints what is wrong, and fails if anything is.
"""
import base64, json, os, re, shutil, signal, struct, subprocess, sys, tempfile, zlib
from html.parser import HTMLParser

problems = []
VOID = {"meta", "link", "br", "hr", "img", "input"}


def problem(text):
    problems.append(text)


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.refers, self.headings = [], [], [], []
        self.declaration, self.lang, self.title, self.style = "", None, "", ""
        self.children = []
        self.csp, self.details, self.summaries, self.tables, self.captions = "", 0, 0, 0, 0

    def handle_decl(self, text):
        self.declaration = text.lower()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if self.children:
            if self.open[-1] == "details" and not self.children[-1] and tag != "summary":
                problem(f"the first thing in <details> is <{tag}>, not its summary")
            if self.open[-1] == "table" and not self.children[-1] and tag != "caption":
                problem("a table without a caption")
            self.children[-1].append(tag)
        if tag == "html":
            self.lang = values.get("lang")
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form", "img"):
            problem(f"<{tag}> in the page")
        for name, value in attributes:
            if name.startswith("on") or name in ("src", "href", "srcset", "action", "background", "data"):
                problem(f"<{tag} {name}={value!r}>")
            if name == "style" and not re.fullmatch(r"width:(100|[0-9]{1,2})%", value or ""):
                problem(f"style {value!r}")
        if "id" in values:
            self.ids.append(values["id"])
        if "aria-labelledby" in values:
            self.refers.append(values["aria-labelledby"])
        if values.get("role") == "img" and not values.get("aria-label"):
            problem(f"<{tag} role=img> has no name")
        if tag == "th" and values.get("scope") not in ("row", "col"):
            problem("a <th> without scope")
        if values.get("http-equiv") == "Content-Security-Policy":
            self.csp = values.get("content", "")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.details += tag == "details"
        self.summaries += tag == "summary"
        if tag not in VOID:
            self.open.append(tag)
            self.children.append([])

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            problem(f"</{tag}> where <{self.open[-1] if self.open else 'nothing'}> is open, line {self.getpos()[0]}")
        else:
            self.open.pop()
            self.children.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "title":
            self.title += data
        if self.open and self.open[-1] == "style":
            self.style += data
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", data):
            problem(f"control characters in {data[:60]!r}")


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    first, second = sorted((luminance(one), luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


# What stands on what, and how much WCAG 2.2 wants there: 4.5 for text, 3 for what is drawn.
PAIRS = [("text", "page", 4.5), ("text", "card", 4.5), ("quiet", "page", 4.5), ("quiet", "card", 4.5),
         ("apps", "free", 3), ("rest", "free", 3), ("apps", "card", 3), ("rest", "card", 3)]


def check_page(text):
    page = Page()
    page.feed(text)
    page.close()
    if page.open:
        problem(f"never closed: {page.open}")
    if page.declaration != "doctype html":
        problem("no doctype")
    if not page.lang or not page.title.strip():
        problem("no language, or no title")
    if "default-src 'none'" not in page.csp:
        problem("no policy that forbids to fetch anything")
    if re.search(r"url\(|@import|expression|https?:", page.style):
        problem("something in the style is fetched")
    if page.headings[:1] != [1] or any(b - a > 1 for a, b in zip(page.headings, page.headings[1:])):
        problem(f"headings are {page.headings}")
    if len(set(page.ids)) != len(page.ids) or any(r not in page.ids for r in page.refers):
        problem("ids are double or missing")
    if page.details != page.summaries:
        problem("a <details> without summary")
    schemes = re.findall(r":root \{(.*?)\}", page.style, re.S)
    if len(schemes) != 2:
        problem(f"{len(schemes)} colour schemes")
    for number, scheme in enumerate(schemes):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", scheme))
        for one, other, least in PAIRS:
            found = contrast(colours[one], colours[other])
            if found < least:
                problem(f"scheme {number}: {one} on {other} has a contrast of {found:.2f}, less than {least}")
    return page


class Browser:
    """Chromium by its own protocol, over pipes: a JSON object and a zero each."""

    def __init__(self, program, directory):
        theirs_in, self.out = os.pipe()
        self.inward, theirs_out = os.pipe()
        def place():
            os.setsid()
            # Neither may be lost when the other gets its number.
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--remote-debugging-pipe", f"--user-data-dir={directory}", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=directory))
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.number, self.events, self.session = b"", 0, [], None
        signal.alarm(120)

    def receive(self):
        while b"\0" not in self.rest:
            piece = os.read(self.inward, 1 << 20)
            if not piece:
                raise SystemExit("Chromium has ended")
            self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        os.write(self.out, data)
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def key(self, name, code, text=None):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def end(self):
        try:
            self.call("Browser.close")
        except (SystemExit, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def colours_in(png):
    """How many pixels have each of the colours of a picture."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    data, place = b"", 8
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place:place + 8])
        if name == b"IDAT":
            data += png[place + 8:place + 8 + length]
        place += length + 12
    size = {2: 3, 6: 4}[kind]
    raw, line, counts = zlib.decompress(data), bytearray(width * size), {}
    for y in range(height):
        start = y * (width * size + 1)
        how, now = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(now)):
            left = now[i - size] if i >= size else 0
            up, corner = line[i], line[i - size] if i >= size else 0
            if how == 1:
                now[i] = (now[i] + left) & 255
            elif how == 2:
                now[i] = (now[i] + up) & 255
            elif how == 3:
                now[i] = (now[i] + (left + up) // 2) & 255
            elif how == 4:
                p = left + up - corner
                a, b, c = abs(p - left), abs(p - up), abs(p - corner)
                now[i] = (now[i] + (left if a <= b and a <= c else up if b <= c else corner)) & 255
        line = now
        for x in range(0, len(now), size):
            colour = "#" + bytes(now[x:x + 3]).hex()
            counts[colour] = counts.get(colour, 0) + 1
    return counts


def check_in_browser(program, path, page, pictures):
    directory = tempfile.mkdtemp()
    browser = Browser(program, directory)
    try:
        targets = browser.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            browser.call(f"{part}.enable")
        browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
        browser.events.clear()
        browser.call("Page.navigate", url="file://" + os.path.abspath(path))
        browser.wait("Page.loadEventFired")
        seen = []
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
            png = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
            if pictures:
                with open(os.path.join(pictures, f"storage-{scheme}.png"), "wb") as file:
                    file.write(png)
            counts = colours_in(png)
            seen.append(max(counts, key=counts.get))
            if len(counts) < 20 or max(counts.values()) > 0.97 * sum(counts.values()):
                problem(f"the {scheme} page is blank: {len(counts)} colours")
        if luminance(seen[0]) < 0.5 or luminance(seen[1]) > 0.1:
            problem(f"light and dark are {seen}")
        if page.details:
            browser.key("Tab", 9)
            if browser.evaluate("document.activeElement.tagName") != "SUMMARY":
                problem("the first thing that the keyboard comes to is no summary")
            browser.key("Enter", 13, "\r")
            if not browser.evaluate("document.querySelector('details').open"):
                problem("the keyboard does not open an app")
            if pictures:
                browser.evaluate("document.activeElement.scrollIntoView()")
                png = browser.call("Page.captureScreenshot", format="png")["data"]
                with open(os.path.join(pictures, "storage-open.png"), "wb") as file:
                    file.write(base64.b64decode(png))
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        if browser.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            problem("the page is wider than a phone")
        for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
            role = node.get("role", {}).get("value")
            name = node.get("name", {}).get("value", "")
            if role in ("DisclosureTriangle", "image", "img", "heading", "table", "region", "RootWebArea") \
                    and not node.get("ignored") and not name.strip():
                problem(f"a {role} without a name")
        for event in browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded" or method == "Runtime.exceptionThrown" \
                    or method == "Runtime.consoleAPICalled":
                problem(f"the console says {json.dumps(parameters)[:300]}")
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if url != "file://" + os.path.abspath(path):
                    problem(f"the page fetches {url}")
    finally:
        browser.end()
        shutil.rmtree(directory, ignore_errors=True)


def main(words):
    wants_browser = "--browser" in words
    pictures = os.environ.get("PICTURES")
    [path] = [word for word in words if word != "--browser"]
    with open(path, encoding="utf-8", errors="strict") as file:
        page = check_page(file.read())
    if wants_browser:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program:
            check_in_browser(program, path, page, pictures)
        else:
            print("SKIPPED: there is no Chromium here (apt-get install chromium): the page was not looked at in it")
    for text in problems:
        print(text)
    print(f"{page.details} apps, {len(problems)} problems")
    return 1 if problems else 0


sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What each program is made to do."""
import http.server
import json
import os
import socket
import subprocess
import threading
import time
import urllib.request

from mount import Failure, run


class Skipped(Exception):
    pass


def expect(condition, words):
    if not condition:
        raise Failure(words)


def program(*names):
    """The first of those programs that is installed for all."""
    for name in names:
        for place in ("/usr/bin", "/usr/sbin", "/usr/games"):
            if os.access(f"{place}/{name}", os.X_OK):
                return f"{place}/{name}"
    raise Skipped(f"{' or '.join(names)} is not installed")


class Work:
    entitlements = []
    options = []

    @property
    def rights(self):
        return ", ".join(f"`{key}`" for key in self.entitlements) or "none"

    @property
    def made_with(self):
        words = ["insula new-app", self.app, "--from", self.source]
        words += self.options + [f"--entitlement {key}" for key in self.entitlements]
        return " ".join(words)

    def install(self, shop, source=None, name=None, entitlements=None):
        options = list(self.options)
        for key in self.entitlements if entitlements is None else entitlements:
            options += ["--entitlement", key]
        return shop.install(name or self.app, source or program(self.source), *options)


class Vim(Work):
    name, title, app, source = "vim", "vim", "Vim", "vim"
    did = "edits a file in Documents with a script of ex commands, undo file and swap file beside it"
    cannot = "open files outside of its container that were not granted: they are not in its view"

    def do(self, shop):
        app = self.install(shop)
        commands = "a\nhello from vim\nsecond line\n.\n%s/hello/HELLO/\nset undofile\nwq\n"
        shop.run(app, "-es", "-N", "-u", "NONE", "-i", "NONE", "Documents/note.txt", text=commands)
        expect(shop.read(app, "Documents/note.txt") == b"HELLO from vim\nsecond line\n", "the text is another one")
        expect(os.path.exists(shop.home(app) + "/Documents/.note.txt.un~"), "there is no undo file")
        stranger = f"{shop.mount.point}/Users/Shared/stranger.txt"
        shop.run(app, "-es", "-N", "-u", "NONE", "-i", "NONE", stranger, text="a\nmine\n.\nw\nq!\n", status=None)
        expect(not os.path.exists(stranger), "it has written outside of its container")


class Bash(Work):
    name, title, app, source = "bash", "bash", "Bash", "bash"
    did = "runs a script with a loop, a pipe, process substitution, a here document and a background job"
    cannot = "run a script that it has written, or another user's program: what an app writes is not executable"

    def do(self, shop):
        app = self.install(shop)
        script = """
            for n in 1 2 3 4 5; do echo "$n"; done | while read -r n; do echo $((n * n)); done > Documents/squares
            sleep 0.1 & wait $!
            diff <(sort -n Documents/squares) Documents/squares && cat <<END
            $(tail -n 1 Documents/squares)
END
            cd Documents && mkdir -p a/b && pwd"""
        printed = shop.run(app, "-c", script)
        expect(printed.split()[0] == "25" and printed.strip().endswith("/Documents"), printed)
        expect(shop.read(app, "Documents/squares") == b"1\n4\n9\n16\n25\n", "the squares are others")
        own = "printf '#!/bin/sh\\necho ran\\n' > Documents/own; chmod +x Documents/own; ./Documents/own"
        expect("ran" not in shop.run(app, "-c", own, status=126), "it has run what it wrote")


class Git(Work):
    name, title, app, source = "git", "git", "Git", "git"
    did = "makes a repository, commits, branches, merges, clones it by its path, packs and checks it"
    cannot = "fetch over the network without `network.client`, nor use the user's keys and settings: " \
        "`~/.ssh` and `~/.gitconfig` are not in its view"

    def do(self, shop):
        app = self.install(shop)
        me = ["-c", "user.name=App", "-c", "user.email=app@example.org", "-c", "init.defaultBranch=main"]
        place = ["-C", "Documents/project"]
        shop.run(app, *me, "init", "-q", "Documents/project")
        shop.write(app, "Documents/project/file", "one\n")
        shop.run(app, *place, "add", "file")
        shop.run(app, *me, *place, "commit", "-q", "-m", "First")
        shop.run(app, *place, "checkout", "-q", "-b", "side")
        shop.write(app, "Documents/project/file", "one\ntwo\n")
        shop.run(app, *me, *place, "commit", "-q", "-a", "-m", "Second")
        shop.run(app, *place, "checkout", "-q", "main")
        shop.run(app, *me, *place, "merge", "-q", "side")
        shop.run(app, "clone", "-q", "Documents/project", "Documents/clone")
        shop.run(app, *place, "gc", "-q")
        shop.run(app, *place, "fsck", "--strict")
        expect(shop.run(app, "-C", "Documents/clone", "log", "--format=%s") == "Second\nFirst\n", "the log differs")
        expect(shop.read(app, "Documents/clone/file") == b"one\ntwo\n", "the clone differs")
        shop.run(app, "ls-remote", "https://127.0.0.1:9/x.git", status=None)


class Python(Work):
    name, title, app = "python", "python3 with a virtual environment", "Report"
    source, options = "report/", ["--executable", "main.py"]
    did = "runs its script by the environment's Python, imports a package that is installed there, uses sqlite3 " \
        "and processes, and writes a report"
    cannot = "install packages into itself: an installed app is read-only (pip can install into the container)"

    def do(self, shop):
        python = program("python3")
        place = f"{shop.scratch}/report"
        os.makedirs(place)
        run(python, "-m", "venv", "--without-pip", f"{place}/venv")
        libraries = f"{place}/venv/lib"
        packages = f"{libraries}/{os.listdir(libraries)[0]}/site-packages"
        with open(f"{packages}/greetings.py", "w") as file:
            file.write("def greet(whom):\n    return f'Hello, {whom}.'\n")
        with open(f"{place}/main.py", "w") as file:
            file.write(
                "import json, multiprocessing, pathlib, sqlite3, sys\n"
                "import greetings\n"
                "def square(n):\n    return n * n\n"
                "if __name__ == '__main__':\n"
                "    with multiprocessing.Pool(2) as pool:\n        squares = pool.map(square, range(5))\n"
                "    base = sqlite3.connect('Documents/base.db')\n"
                "    base.execute('create table t (n)')\n"
                "    base.executemany('insert into t values (?)', [(n,) for n in squares])\n"
                "    base.commit()\n"
                "    total = base.execute('select sum(n) from t').fetchone()[0]\n"
                "    report = {'total': total, 'prefix': sys.prefix, 'words': greetings.greet(sys.argv[1])}\n"
                "    pathlib.Path('Documents/report.json').write_text(json.dumps(report))\n")
        app = self.install(shop, source=place)
        shop.run(app, "world")
        report = json.loads(shop.read(app, "Documents/report.json"))
        expect(report["total"] == 30 and report["words"] == "Hello, world.", f"{report}")
        expect(report["prefix"].startswith(f"{shop.mount.point}/Applications/Report.app/"), f"{report}")


class SQLite(Work):
    name, title, app, source = "sqlite3", "sqlite3", "Base", "sqlite3"
    did = "makes a database in Documents with a write-ahead log, fills it in a transaction, queries and checks it"
    cannot = "open databases of other apps: their containers are not in its view"

    def do(self, shop):
        app = self.install(shop)
        commands = """
            pragma journal_mode = wal; create table t (n integer primary key, word text);
            with recursive c(n) as (select 1 union all select n + 1 from c where n < 5000)
              insert into t select n, 'word ' || n from c;
            create index i on t (word); vacuum; pragma integrity_check; select count(*), sum(n) from t;"""
        printed = shop.run(app, "Documents/base.db", text=commands)
        expect(printed.split() == ["wal", "ok", "5000|12502500"], printed)
        expect(shop.read(app, "Documents/base.db").startswith(b"SQLite format 3"), "that is no database")


class ImageMagick(Work):
    name, title, app, source = "imagemagick", "ImageMagick (convert)", "Convert", "convert-im6.q16"
    did = "draws a picture, scales and blurs it with several threads, and writes it as PNG and JPEG"
    cannot = "read the user's Pictures without `assets.pictures.read-only` and the user's consent, nor show a " \
        "picture (`display`) without `org.insula.desktop.x11`"

    def do(self, shop):
        app = self.install(shop)
        shop.run(app, "-size", "320x200", "gradient:red-blue", "-blur", "0x4", "-resize", "50%", "Documents/a.png")
        shop.run(app, "Documents/a.png", "-rotate", "90", "Documents/b.jpg")
        picture = shop.read(app, "Documents/a.png")
        size = (int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big"))
        expect(picture.startswith(b"\x89PNG") and size == (160, 100), f"{size}")
        expect(shop.read(app, "Documents/b.jpg").startswith(b"\xff\xd8\xff"), "that is no JPEG")


class WebServer(Work):
    name, title, app, source = "web-server", "lighttpd, a web server", "Server", "lighttpd"
    entitlements = ["network.server"]
    did = "serves files of its Documents to another program of the machine, and writes its log there"
    cannot = "be reached without the entitlement: it then has a network of its own. Ports below 1024 need rights " \
        "that no app has"

    def do(self, shop):
        app = self.install(shop)
        self.serve(shop, app, is_reached=True)
        closed = self.install(shop, name="Closed", entitlements=[])
        self.serve(shop, closed, is_reached=False)
        self.configure(shop, app, 80)
        shop.run(app, "-D", "-f", "Documents/server.conf", status=None)

    def configure(self, shop, app, port):
        home = shop.home(app)
        shop.write(app, "Documents/server.conf",
                   f'server.document-root = "{home}/Documents"\nserver.bind = "127.0.0.1"\n'
                   f'server.port = {port}\nserver.errorlog = "{home}/Documents/log"\n')

    def serve(self, shop, app, is_reached):
        shop.run(app, "-v")
        shop.write(app, "Documents/page.html", "<p>A page.</p>\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.configure(shop, app, port)
        server = shop.start(app, "-D", "-f", "Documents/server.conf")
        page = None
        try:
            end = time.monotonic() + (20 if is_reached else 2)
            while page is None and time.monotonic() < end:
                expect(server.poll() is None, "the server has ended")
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/page.html", timeout=5) as answer:
                        page = answer.read()
                except OSError:
                    time.sleep(0.05)
        finally:
            shop.stop(server)
        expect(page == (b"<p>A page.</p>\n" if is_reached else None), f"{page}")
        expect(b"server started" in shop.read(app, "Documents/log"), "there is no log")


class Curl(Work):
    name, title, app, source = "curl", "curl", "Fetch", "curl"
    entitlements = ["network.client"]
    did = "fetches a page of a server on the machine into its Documents, with all certificates of the system at hand"
    cannot = "reach anything without the entitlement: it ends with its status for a failed connection"

    def do(self, shop):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"page\n")

            def log_message(self, *words):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/"
            app = self.install(shop)
            shop.run(app, "-sS", "-o", "Documents/page", address)
            expect(shop.read(app, "Documents/page") == b"page\n", "the page differs")
            closed = self.install(shop, name="Offline", entitlements=[])
            shop.run(closed, "-sS", "--max-time", "10", address, status=7)
        finally:
            server.shutdown()
            server.server_close()


class Windowed(Work):
    """A program with a window, which shows it with the entitlement for it, and finds no display without."""
    entitlements = ["org.insula.desktop.x11"]

    def do(self, shop):
        for name in ("xwininfo", "xwd"):
            program(name)
        server = Display(program("Xvfb"))
        try:
            app = self.install(shop)
            expect(shop.run(app, self.version).strip(), "it says nothing of itself")
            shop.write(app, "Documents/note.txt", "written in a container\n")
            process = shop.start(app, *self.arguments, environment={"DISPLAY": server.name})
            server.await_window(self.window)
            colours = server.colours()
            shop.stop(process)
            expect(colours > 1, f"the window shows nothing: {colours} colours")
            closed = self.install(shop, name=self.app + "Closed", entitlements=[])
            printed = shop.run(closed, *self.arguments, status=None, environment={"DISPLAY": server.name})
            expect("display" in printed.lower(), printed)
        finally:
            server.stop()


class Display:
    """An X server with a screen in memory."""

    def __init__(self, path):
        read, write = os.pipe()
        words = [path, "-ac", "-nolisten", "tcp", "-screen", "0", "640x480x24", "-displayfd", str(write)]
        self.process = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with open(read) as file:
            self.name = ":" + file.readline().strip()

    def ask(self, *words):
        return subprocess.run([*words, "-display", self.name], stdout=subprocess.PIPE, timeout=20).stdout

    def await_window(self, title):
        for _ in range(600):
            if title.encode() in self.ask("xwininfo", "-root", "-tree"):
                # It is there before it is drawn.
                time.sleep(1)
                return
            time.sleep(0.05)
        raise Failure(f"no window '{title}' has appeared")

    def colours(self):
        pixels = memoryview(self.ask("xwd", "-root", "-silent")[-640 * 480 * 4:]).cast("I")
        return len(set(pixels))

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


class Editor(Windowed):
    name, title, app, source = "gtk-editor", "mousepad, an editor with GTK", "Mousepad", "mousepad"
    arguments, version, window = ["Documents/note.txt"], "--version", "note.txt"
    did = "opens a file of its Documents in a window"
    cannot = "keep its settings (dconf) or be found by other programs without `org.insula.desktop.bus`"


class X11(Windowed):
    name, title, app, source = "x11", "xterm, a program of X11", "Xterm", "xterm"
    arguments, version, window = ["-T", "in the sandbox"], "-version", "in the sandbox"
    did = "shows a terminal with a shell in the app's view"
    cannot = "be kept from other windows of the display: X11 knows no boundary between programs"


class Make(Work):
    name, title, app, source = "make", "make with gcc", "Make", "make"
    entitlements = ["cs.disable-library-validation"]
    did = "builds a C program of two files with the system's gcc in its Documents, and runs it"
    cannot = "run what it has built without the entitlement: what an app writes is not executable (compiling works). " \
        "An app of gcc itself looks for its parts beside itself, and needs `--env GCC_EXEC_PREFIX=/usr/lib/gcc/`"

    def do(self, shop):
        program("gcc")
        app = self.install(shop)
        self.build(shop, app, runs=True)
        closed = self.install(shop, name="Compile", entitlements=[])
        self.build(shop, closed, runs=False)
        # gcc looks for the rest of it from where it is itself.
        compiler = shop.install("Gcc", program("gcc"))
        shop.run(compiler, "--version")
        shop.write(compiler, "Documents/a.c", "int main(void) { return 0; }\n")
        words = ["-O2", "-o", "Documents/a", "Documents/a.c"]
        shop.run(compiler, *words, status=1)
        shop.run(compiler, *words, options=["--env", "GCC_EXEC_PREFIX=/usr/lib/gcc/"])
        expect(shop.read(compiler, "Documents/a").startswith(b"\x7fELF"), "that is no program")

    def build(self, shop, app, runs):
        shop.run(app, "--version")
        shop.write(app, "Documents/main.c", '#include <stdio.h>\nint twice(int);\n'
                                            'int main(void) { printf("%d\\n", twice(21)); return 0; }\n')
        shop.write(app, "Documents/twice.c", "int twice(int n) { return 2 * n; }\n")
        shop.write(app, "Documents/Makefile",
                   "all: run\nrun: program\n\t./program > result\nprogram: main.o twice.o\n\t$(CC) -o $@ $^\n")
        printed = shop.run(app, "-C", "Documents", "-j2", status=0 if runs else 2)
        expect(os.path.exists(shop.home(app) + "/Documents/program"), printed)
        expect(not runs or shop.read(app, "Documents/result") == b"42\n", printed)


class Node(Work):
    name, title, app, source = "node", "node", "Node", "node"
    did = "runs a script with promises, a worker thread, compression and files, in its Documents"
    cannot = "load add-ons that it has written itself without `cs.disable-library-validation`"

    def do(self, shop):
        app = self.install(shop)
        shop.run(app, "--version")
        shop.write(app, "Documents/work.js", """
            const fs = require('fs/promises'), zlib = require('zlib'), { Worker } = require('worker_threads');
            (async () => {
              const sum = await new Promise((good, bad) => {
                const code = `let s = 0; for (let n = 0; n < 1e6; n++) s += n % 7;
                  require('worker_threads').parentPort.postMessage(s)`;
                new Worker(code, { eval: true }).on('message', good).on('error', bad);
              });
              await fs.writeFile('Documents/packed', zlib.gzipSync('sum ' + sum));
              const text = zlib.gunzipSync(await fs.readFile('Documents/packed')).toString();
              console.log(text, process.env.HOME.endsWith('/Data'));
            })();""")
        expect(shop.run(app, "Documents/work.js") == "sum 2999997 true\n", "the result differs")


ALL = [work() for work in (Vim, Bash, Git, Python, SQLite, ImageMagick, WebServer, Curl, Editor, X11, Make, Node)]

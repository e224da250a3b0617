# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Shows bytes in a real terminal, and says what a person sees: question-on-a-screen.py TERMINAL FILE
# TERMINAL is xterm, tmux, screen, or one of these in xterm ("xterm+screen"). In a window it says "visible" if so much of that has another
# colour than the rest that it may be text; tmux and screen say which words there are.
import collections, os, shutil, struct, subprocess, sys, tempfile, time

terminal, file = sys.argv[1:]
place = tempfile.mkdtemp()
shown, printed = place + "/shown", place + "/printed"
environment = {"PATH": os.environ["PATH"], "HOME": place, "TERM": "xterm", "LANG": "C.UTF-8", "SCREENDIR": place + "/screens"}
os.mkdir(place + "/screens", 0o700)
script = place + "/script"
open(script, "w").write(f"stty raw -echo; cat '{file}'; sleep 1; touch {shown}; exec sleep 100\n")


def wait(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{terminal}: no {what}")
        time.sleep(0.05)


def run(*words):
    return subprocess.run(words, env=environment, capture_output=True, check=True).stdout


def colours(image):
    """How many pixels of the screen have which colour, in a picture of xwd's."""
    fields = struct.unpack(">25I", image[:100])
    size, width, height, bits, line, count = fields[0], fields[4], fields[5], fields[11], fields[12], fields[19]
    pixels = image[size + 12 * count :]
    step = bits // 8
    return collections.Counter(pixels[y * line + x * step :][:step] for y in range(height) for x in range(width))


children = []
try:
    tmux = ["tmux", "-f", place + "/tmux.conf", "-S", place + "/socket"]
    open(place + "/tmux.conf", "w").write("set -g allow-passthrough on\nset -g status off\n")
    inside = {
        "xterm": ["sh", script],
        "xterm+screen": ["screen", "-c", "/dev/null", "sh", script],
        "xterm+tmux": tmux + ["new-session", "sh " + script],
    }
    if terminal == "tmux":
        run(*tmux, "new-session", "-d", "-x", "80", "-y", "24", "sh " + script)
        wait(lambda: os.path.exists(shown), "question")
        print(run(*tmux, "capture-pane", "-p").decode())
        run(*tmux, "kill-server")
    elif terminal == "screen":
        run("screen", "-c", "/dev/null", "-dmS", "question", "sh", script)
        wait(lambda: os.path.exists(shown), "question")
        run("screen", "-S", "question", "-X", "hardcopy", printed)
        wait(lambda: os.path.exists(printed) and os.path.getsize(printed), "hard copy")
        print(open(printed, errors="replace").read())
        run("screen", "-S", "question", "-X", "quit")
    else:
        reading, writing = os.pipe()
        server = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "480x299x24", "-nolisten", "tcp"]
        children.append(subprocess.Popen(server, pass_fds=[writing], stderr=subprocess.DEVNULL))
        os.close(writing)
        environment["DISPLAY"] = ":" + os.read(reading, 20).decode().strip()
        settings = {"allowWindowOps": "true", "geometry": "80x23+0+0", "borderWidth": "0", "internalBorder": "0"}
        words = ["xterm"] + [word for name, value in settings.items() for word in ("-xrm", f"XTerm*{name}: {value}")]
        children.append(subprocess.Popen(words + ["-e"] + inside[terminal], env=environment, stderr=subprocess.DEVNULL))
        wait(lambda: os.path.exists(shown), "question")
        counts = colours(run("xwd", "-root", "-silent"))
        if sum(counts.values()) - counts.most_common(1)[0][1] > 1000:
            print("visible")
        print("colours", counts.most_common(4), file=sys.stderr)
        if "PICTURE" in os.environ:
            subprocess.run(["sh", "-c", "xwd -root -silent | convert xwd:- $PICTURE"], env=environment | os.environ)
finally:
    for child in reversed(children):
        child.kill()
        child.wait()
    shutil.rmtree(place, ignore_errors=True)

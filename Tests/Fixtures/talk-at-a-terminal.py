# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Types at a shell's terminal and waits for words: talk-at-a-terminal.py TYPED WORD TYPED WORD... A WORD that is a pattern must match
# what was shown since the last one; an empty one waits for nothing, and an empty TYPED types nothing. "^C" and its like are typed as keys, "SIZE" makes the window larger.
import fcntl, os, pty, re, select, struct, sys, termios, time

pid, terminal = pty.fork()
if pid == 0:
    os.environ["PS1"] = "> "
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""


def wait_for(word):
    global seen
    end = time.monotonic() + 180
    while not (found := re.search(word, seen)):
        if time.monotonic() > end:
            sys.exit(f"no {word!r}, but {seen!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                sys.exit(f"ended without {word!r}: {seen!r}")
    seen = seen[found.end() :]


fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
wait_for("> ")
for typed, word in zip(sys.argv[1::2], sys.argv[2::2]):
    time.sleep(0.2)
    if typed == "SIZE":
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
    elif re.fullmatch(r"\^[A-Z\\]", typed):
        os.write(terminal, bytes([ord(typed[1]) - 64]))
    elif typed == "ESC":
        os.write(terminal, b"\x1b")
    elif typed == "":
        pass
    else:
        os.write(terminal, typed.encode() + (b"" if typed.endswith("&&") else b"\r"))
    wait_for(word)

# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Types lines at a shell's terminal with the tabulator key behind them: complete-at-a-terminal.py SHELL SCRIPT [LINE EXPECTED]...
# In that shell 'insula' prints its words, each as <WORD>, and completion asks the program. EXPECTED may be empty: then the line is
# thrown away once the shell has offered what it has.
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

shell, script = sys.argv[1:3]
steps = list(zip(sys.argv[3::2], sys.argv[4::2]))
commands = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
begin = {
    "bash": f"PS1='> '; source {script}; bind 'set bell-style none'; insula() {{ printf '<%s>' \"$@\"; echo '[end]'; }}",
    "zsh": f"PS1='> '; unsetopt beep auto_remove_slash; autoload -Uz compinit; compinit -u -D; source {script}; "
    "insula() { printf '<%s>' \"$@\"; echo '[end]'; }",
    "fish": f"source {script}; function insula; printf '<%s>' $argv; echo '[end]'; end; "
    "function fish_prompt; echo -n '> '; end; set -g fish_autosuggestion_enabled 0",
}[shell] + "; echo rea''dy"
pid, terminal = pty.fork()
if pid == 0:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(commands[shell][0], commands[shell])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
seen = b""


def read(seconds):
    """Reads until nothing comes for so long."""
    global seen
    while select.select([terminal], [], [], seconds)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return
        seen += piece
        # What fish asks a terminal is answered as xterm does.
        if b"\x1b[c" in piece or b"\x1b[0c" in piece:
            os.write(terminal, b"\x1b[?62;c")
        if b"\x1b[6n" in piece:
            os.write(terminal, b"\x1b[1;1R")


def text():
    plain = re.sub(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-B]|[=>78])", b"", seen)
    return plain.decode(errors="replace").replace("\r", "")


def wait_for(pattern, seconds=60):
    end = time.monotonic() + seconds
    while not re.search(pattern, text()):
        if time.monotonic() > end:
            print(f"{shell}: no {pattern!r}, but {text()!r}")
            os.kill(pid, signal.SIGKILL)
            sys.exit(1)
        read(0.2)


read(0.5)
os.write(terminal, begin.encode() + b"\r")
wait_for("\nready")
read(0.3)
failed = False
for line, expected in steps:
    seen = b""
    os.write(terminal, line.encode())
    read(0.2)
    os.write(terminal, b"\t")
    if not expected:
        read(1.5)
        os.write(terminal, b"\t")
        read(1.5)
        os.write(terminal, b"\x03")
        read(0.5)
        continue
    # The program is asked, and takes its time.
    before = len(seen)
    end = time.monotonic() + 20
    while len(seen) == before and time.monotonic() < end:
        read(0.3)
    read(0.3)
    os.write(terminal, b"\r")
    wait_for(re.escape("[end]"))
    got = re.findall(r"(<.*>)\[end\]", text().replace("\r", "").replace("\n", ""))
    # A shell at the end of a narrow line breaks it; what counts is what the command was given.
    if not any(word.endswith(expected) for word in got):
        print(f"{shell}: {line!r} gave {got!r} instead of {expected!r}: {text()!r}")
        failed = True
    read(0.2)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
sys.exit(failed)

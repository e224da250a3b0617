#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Shows where the microseconds of a round trip go: client, kernel, daemon, and in it each system call.

usage: profile.py INSULA STORE LOOP PLAIN MOUNTED PID
mount-scripts/bench.sh --profile mounts what this needs, and calls it.
"""
import collections, json, os, re, subprocess, sys, tempfile

OPERATIONS = ["getxattr", "setxattr", "chmod", "rename", "create", "mkdir"]
SECONDS = 2
insula, store, loop, plain, mounted = sys.argv[1:6]
daemon = int(sys.argv[6])


def run_loop(operation, directory, before=()):
    """The number of operations, and the microseconds of each."""
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as work:
        # The kernel keeps no names of a directory that is closed to others.
        os.chmod(work, 0o755)
        words = [*before, loop, operation, str(SECONDS)]
        result = subprocess.run(words, cwd=work, stdout=subprocess.PIPE, check=True, text=True, timeout=120)
    count, nanoseconds = result.stdout.split()[-2:]
    return int(count), int(nanoseconds) / 1000


def traced(operation):
    """Requests for each operation, and the microseconds that the daemon serves them."""
    with tempfile.NamedTemporaryFile() as report:
        count, _ = run_loop(operation, mounted, [insula, "trace", "--json", "-o", report.name, "--store", store, "--"])
        own = json.load(report)["own"]
    kinds = {kind: (tally["count"] / count, tally["nanoseconds"] / 1000 / count) for kind, tally in own.items()}
    return {kind: pair for kind, pair in kinds.items() if pair[0] > 0.02}


def call_of(frames):
    """What a sample was in: a system call by its name, or the program itself."""
    if "do_syscall_64" not in frames:
        return "the program itself"
    inner = frames[:frames.index("do_syscall_64")]
    name = inner[-1] if inner else ""
    if name in ("", "x64_sys_call", "syscall_trace_enter", "exit_to_user_mode_loop"):
        return "entering and leaving calls"
    return re.sub(r"^(__(x64|arm64|do|se)_sys_|ksys_|do_sys_)", "", name)


def profiled(operation):
    """Microseconds of processor time for each operation, by process and system call."""
    with tempfile.NamedTemporaryFile() as data:
        record = ["perf", "record", "-q", "-a", "-g", "-F", "4999", "-e", "cpu-clock", "-o", data.name, "--"]
        count, _ = run_loop(operation, mounted, record)
        script = subprocess.run(
            ["perf", "script", "-i", data.name, "-F", "comm,pid,ip,sym", "--no-inline"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=300).stdout
    times = collections.defaultdict(lambda: collections.Counter())
    for sample in script.split("\n\n"):
        lines = sample.strip().split("\n")
        head = re.match(r"\s*(.*?)\s+(\d+)", lines[0])
        if not head:
            continue
        pid, frames = int(head.group(2)), [line.strip().partition(" ")[2] for line in lines[1:]]
        who = "daemon" if pid == daemon else "client" if head.group(1) == "loop" else None
        if who:
            times[who][call_of(frames)] += 1e6 / 4999 / count
    return times


print("| operation | whole | plain | requests, served in | client's CPU | daemon's CPU |")
print("|---|--:|--:|---|---|---|")
for operation in OPERATIONS:
    run_loop(operation, mounted)
    _, alone = run_loop(operation, plain)
    _, whole = run_loop(operation, mounted)
    requests = ", ".join(
        f"{kind} {number:.2f}: {time:.1f}" for kind, (number, time) in sorted(traced(operation).items(), key=lambda p: -p[1][1]))
    cells = []
    for who, counts in (("client", profiled(operation)["client"]), ("daemon", profiled(operation)["daemon"])):
        parts = ", ".join(f"{call} {time:.1f}" for call, time in counts.most_common() if time >= 0.15)
        cells.append(f"{sum(counts.values()):.1f}: {parts}")
    print(f"| {operation} | {whole:.1f} | {alone:.1f} | {requests} | {cells[0]} | {cells[1]} |", flush=True)
print("\nMicroseconds for each operation. A polling daemon's CPU includes its waiting (read and poll).")

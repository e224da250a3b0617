# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Writes faults into Swift files as switches: each body of a function that has some is there once for each of
them and once as it was, and a number from the environment chooses.

    { BODY }    becomes    { if InsulaMutant.isOn(7) { FAULTY BODY } else { BODY } }
"""
import os
import re

import swifttext

# A file of each module that has a fault. It is in the copy alone.
SWITCH_FILE = "InsulaMutant.swift"
SWITCH = """import Glibc

/// The fault that is turned on, and which ones a run without any has come by.
enum InsulaMutant {
  static let number = variable("INSULA_MUTANT").flatMap { Int($0) } ?? 0

  /// Where the numbers go that the program comes by; nil if nobody asks.
  private static let seen = variable("INSULA_MUTANTS_SEEN")
  nonisolated(unsafe) private static let isNoted: UnsafeMutablePointer<Bool> = {
    let flags = UnsafeMutablePointer<Bool>.allocate(capacity: COUNT)
    flags.initialize(repeating: false, count: COUNT)
    return flags
  }()

  static func isOn(_ asked: Int) -> Bool {
    if number != 0 { return number == asked }
    guard let seen, !isNoted[asked] else { return false }
    // Two threads may both note it, which does no harm.
    isNoted[asked] = true
    let before = errno
    defer { errno = before }
    // Not kept open: a program may close all that it does not know, and give the number to something else.
    let file = open(seen, O_WRONLY | O_APPEND | O_CLOEXEC)
    guard file >= 0 else { return false }
    var line = Array("\\(asked)\\n".utf8)
    _ = write(file, &line, line.count)
    close(file)
    return false
  }

  private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
"""


def switch_file(faults):
    """The file that each module with a fault gets; room for all numbers."""
    return SWITCH.replace("COUNT", str(max((fault.number for fault in faults), default=0) + 1))


class Fault:
    """A change of one text, in one place of one file."""

    def __init__(self, name, file, start, end, new, suites=()):
        self.name, self.file, self.start, self.end, self.new = name, file, start, end, new
        self.suites = list(suites)
        self.number = 0

    @classmethod
    def replacing(cls, name, file, start, old, new, suites):
        """A change of what differs alone, as that may be within a function where the whole is not."""
        before = len(os.path.commonprefix([old, new]))
        shorter = min(len(old), len(new)) - before
        after = min(len(os.path.commonprefix([old[::-1], new[::-1]])), shorter)
        return cls(name, file, start + before, start + len(old) - after, new[before:len(new) - after], suites)

    def changed(self, text, start, end):
        """The part of the text between two positions, with this fault in it."""
        return text[start:self.start] + self.new + text[self.end:end]

    def lines(self, text):
        """The whole lines that it changes: before, and after; blanks at their ends left out."""
        start = text.rfind("\n", 0, self.start) + 1
        end = text.find("\n", self.end)
        end = len(text) if end < 0 else end
        return text[start:end].strip(), self.changed(text, start, end).strip()

    def line(self, text):
        return text.count("\n", 0, self.start) + 1


class Woven:
    """A file with its switches."""

    def __init__(self, text, owners):
        self.text = text
        # For each line the faults that it may be there for, the first is in line 1.
        self.owners = owners

    def faults_at(self, line):
        return self.owners[line - 1] if 0 < line <= len(self.owners) else []


def body_of(fault, bodies):
    """The body that a fault is wholly within; None if it is in no function."""
    return next((body for body in bodies if body[0] < fault.start and fault.end <= body[1]), None)


def is_balanced(text):
    """Whether every bracket in a text is closed in it."""
    masked = "{" + swifttext.mask(text) + "\n}"
    return swifttext.closing(masked, 0) == len(masked) - 1


def assign(text, faults):
    """The faults by the body that they are in, and those that can't be switches."""
    bodies = swifttext.bodies(swifttext.mask(text))
    groups, unfit = {}, []
    for fault in faults:
        body = body_of(fault, bodies)
        if body is None or not is_balanced(fault.changed(text, body[0] + 1, body[1])):
            unfit.append(fault)
        else:
            groups.setdefault(body, []).append(fault)
    return groups, unfit


def weave(text, groups):
    """The text with a switch in each body that has faults."""
    parts, owners, position = [], [], 0

    def add(part, faults):
        # A part that ends within a line shares that line with the next.
        lines = part.split("\n")
        if not owners:
            owners.append([])
        owners[-1] = owners[-1] + [fault for fault in faults if fault not in owners[-1]]
        owners.extend(list(faults) for _ in lines[1:])
        parts.append(part)

    for (opening, end), faults in sorted(groups.items()):
        add(text[position:opening + 1], [])
        add("\n", [])
        word = "if"
        for fault in faults:
            add(f"{word} InsulaMutant.isOn({fault.number}) {{\n", [])
            add(fault.changed(text, opening + 1, end), [fault])
            add("\n", [])
            word = "} else if"
        add("} else {\n", faults)
        add(text[opening + 1:end], faults)
        add("\n}\n", [])
        position = end
    add(text[position:], [])
    return Woven("".join(parts), owners)


ERROR = re.compile(r"^(/[^:\n]+):(\d+):\d+: error: (.*)$", re.MULTILINE)


def errors(log):
    """What the compiler refused: path, line and message of each."""
    return sorted({(path, int(line), words) for path, line, words in ERROR.findall(log)})

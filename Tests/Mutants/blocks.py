# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Reads the list of faults, and those that are known to make no difference."""


class Mutant:
    def __init__(self, name, file, suites, old, new):
        self.name, self.file, self.suites, self.old, self.new = name, file, suites, old, new

    def position(self, root):
        """Where its text is in its file; raises ValueError where it does not apply."""
        path = root / self.file
        if not path.is_file():
            raise ValueError(f"there is no {self.file}")
        text = path.read_text()
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"its text is in {self.file} {count} times")
        return text.index(self.old)


def read_blocks(path, wanted):
    """Blocks: '= NAME', a line for each of the words wanted, '<<<', the text, '---', its replacement, '>>>'."""
    found, fields, part = [], {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if part is not None:
            if part == "old" and line == "---":
                part = "new"
            elif part == "new" and line == ">>>":
                if missing := {"name", *wanted} - fields.keys():
                    raise ValueError(f"{path}:{number}: {', '.join(sorted(missing))} missing")
                found.append({**fields, "old": "\n".join(fields["old"]), "new": "\n".join(fields["new"])})
                fields, part = {}, None
            else:
                fields[part].append(line)
        elif line == "<<<":
            fields["old"], fields["new"], part = [], [], "old"
        elif line.startswith("= "):
            fields = {"name": line[2:].strip()}
        elif line.split(" ", 1)[0] in wanted:
            word, _, value = line.partition(" ")
            fields[word] = value.strip()
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{path}:{number}: can't be read: {line}")
    if part is not None:
        raise ValueError(f"{path}: a block has no end")
    return found


def read_list(path):
    found = read_blocks(path, {"file", "suites"})
    names = [fields["name"] for fields in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: a name is there twice: {', '.join(twice)}")
    return [Mutant(fields["name"], fields["file"], fields["suites"].split(), fields["old"], fields["new"])
            for fields in found]


def read_equivalent(path):
    """The file, the lines before and the lines after of each, blanks at the ends of lines left out."""
    return {(fields["file"], _plain(fields["old"]), _plain(fields["new"]))
            for fields in read_blocks(path, {"file", "reason"})}


def is_equivalent(fault, text, known):
    before, after = fault.lines(text)
    return (fault.file, _plain(before), _plain(after)) in known


def _plain(text):
    return "\n".join(line.strip() for line in text.strip().splitlines())

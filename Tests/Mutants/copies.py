# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""The copy of the tree that has the switches: it is made, built, and what does not compile is taken out."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import switches

# A build for each layer of modules in which something does not compile, and some more.
MOST_BUILDS = 20


def sources(root):
    """The text of each Swift file of the program, by its path."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.glob("Sources/**/*.swift"))}


def enter_namespace():
    """What a faulty program mounts and writes must not reach this machine's own files."""
    if os.environ.get("INSULA_MUTANTS") == "inside":
        return
    environment = dict(os.environ, INSULA_MUTANTS="inside")
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, *sys.argv], environment)


class Weaving:
    """What became of the faults: switches, none possible, or refused by the compiler with these words."""

    def __init__(self):
        self.fit, self.unfit, self.refused, self.builds = set(), set(), {}, 0


class Copy:
    def __init__(self, root, kept):
        self.root, self.is_kept = root, kept is not None
        (root / ".build").mkdir(exist_ok=True)
        place = kept or tempfile.mkdtemp(prefix="mutants-", dir=root / ".build")
        self.path = pathlib.Path(place).resolve()
        self.path.mkdir(parents=True, exist_ok=True)
        # Tests are ordinary users too.
        self.path.chmod(0o755)
        self.written = set()
        self._refresh()

    def _files(self):
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=self.root, check=True, capture_output=True).stdout.split(b"\0")
        return [os.fsdecode(name) for name in listed if name and (self.root / os.fsdecode(name)).is_file()]

    def _refresh(self):
        """Makes it what the working directory is; what is the same keeps its time, and is not built anew.

        A Swift source waits for its switches. What another run has left is removed.
        """
        names = self._files()
        for name in names:
            if not (name.startswith("Sources/") and name.endswith(".swift")):
                self._write(name, (self.root / name).read_bytes())
                shutil.copymode(self.root / name, self.path / name)
        for top in ("Sources", "Tests"):
            for path in self.path.glob(f"{top}/**/*.swift"):
                if str(path.relative_to(self.path)) not in names and path.name != switches.SWITCH_FILE:
                    path.unlink()

    def _write(self, name, content):
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != content:
            target.write_bytes(content)

    def weave(self, texts, faults, limit):
        """Writes the switches and builds, until all that is left compiles; None where it does not without any."""
        weaving, woven, groups = Weaving(), {}, {}
        for file in texts:
            groups[file], unfit = switches.assign(texts[file], [fault for fault in faults if fault.file == file])
            weaving.unfit.update(unfit)
        modules = {"/".join(file.split("/")[:2]) for file in texts if groups[file]}
        for module in modules:
            self._write(f"{module}/{switches.SWITCH_FILE}", switches.switch_file(faults).encode())
        changed = set(texts)
        while weaving.builds < MOST_BUILDS:
            for file in changed:
                woven[file] = switches.weave(texts[file], groups[file])
                self._write(file, woven[file].text.encode())
            weaving.builds += 1
            if self.build(limit) == 0:
                weaving.fit = {fault for found in groups.values() for part in found.values() for fault in part}
                return weaving
            changed = self._drop_refused(woven, groups, weaving)
            if not changed:
                return None
        return None

    def _drop_refused(self, woven, groups, weaving):
        """Takes out the faults at the lines that the compiler names; gives the files that change."""
        changed = set()
        for path, line, words in switches.errors((self.path / "build.log").read_text(errors="replace")):
            file = os.path.relpath(path, self.path)
            for fault in woven[file].faults_at(line) if file in woven else []:
                if fault in weaving.refused:
                    continue
                weaving.refused[fault] = f"line {line}: {words}"
                changed.add(file)
        for file in changed:
            for body in list(groups[file]):
                left = [fault for fault in groups[file][body] if fault not in weaving.refused]
                groups[file].pop(body)
                if left:
                    groups[file][body] = left
        return changed

    def unweave(self, texts):
        for file, text in texts.items():
            self._write(file, text.encode())

    @contextlib.contextmanager
    def changed(self, file, text):
        whole = (self.path / file).read_bytes()
        self._write(file, text.encode())
        try:
            yield
        finally:
            self._write(file, whole)

    def build(self, limit):
        """The exit status; the compiler's words are in 'build.log'."""
        words = ["swift", "build", "--build-tests", "-debug-info-format", "none"]
        environment = dict(os.environ, INSULA_QUICK_TESTS="1")
        with open(self.path / "build.log", "wb") as log:
            try:
                return subprocess.run(words, cwd=self.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      timeout=limit, env=environment).returncode
            except subprocess.TimeoutExpired:
                return -1

    def end(self):
        if not self.is_kept:
            shutil.rmtree(self.path, ignore_errors=True)

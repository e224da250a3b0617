# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What Package.swift declares against what the sources import: prints each difference.

SwiftPM's own check of imports does not know C modules, and says nothing of what is declared and not used.
"""
import json
import pathlib
import re
import subprocess

IMPORT = re.compile(r"^\s*(?:@\w+ )*(?:internal |package |public |private |fileprivate )?import (?:\w+ )?(\w+)", re.M)

package = json.loads(subprocess.run(["swift", "package", "dump-package"], capture_output=True, check=True, text=True).stdout)
targets = {target["name"]: target for target in package["targets"]}
programs = {name for name, target in targets.items() if target["type"] == "executable"}

for name, target in targets.items():
    path = target.get("path") or ("Tests/" if target["type"] == "test" else "Sources/") + name
    sources = list(pathlib.Path(path).rglob("*.swift"))
    if not sources:
        continue
    imported = {found for source in sources for found in IMPORT.findall(source.read_text())} & targets.keys() - {name}
    # What a test runs as a program is no module.
    declared = {next(iter(entry.values()))[0] for entry in target["dependencies"]} - programs
    for missing in sorted(imported - declared):
        print(f"{name} imports {missing} and does not declare it")
    for unused in sorted(declared - imported):
        print(f"{name} declares {unused} and does not import it")

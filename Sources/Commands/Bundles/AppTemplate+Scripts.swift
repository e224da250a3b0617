// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The programs of apps to begin with. All do the same: they print where they and their containers are, and
// write to Documents.

extension AppTemplate {
  private var bundleFromExecutable: String { isFlat ? "" : "/../.." }

  func script(_ template: ProgramSearch.Template) -> String { template == .python ? python : shell }

  private var shell: String {
    """
    #!/bin/sh
    # This app prints where it and its container are, and writes to its Documents directory.
    set -eu
    bundle=$(cd "$(dirname "$0")\(bundleFromExecutable)" && pwd)
    cat "$bundle/\(resources)Welcome.txt"
    echo "My bundle:    $bundle"
    # The home of an app is the Data directory of its container.
    echo "My container: $HOME"
    if [ ! -d "$HOME/Documents" ]; then
      echo "There is no $HOME/Documents, so nothing was written." >&2
      exit 1
    fi
    date '+%F %T' >> "$HOME/Documents/starts.txt"
    echo "Started $(grep -c '' "$HOME/Documents/starts.txt") times; see $HOME/Documents/starts.txt."

    """
  }

  private var python: String {
    """
    #!/usr/bin/env python3
    # This app prints where it and its container are, and writes to its Documents directory.
    import datetime
    import pathlib
    import sys

    bundle = pathlib.Path(__file__).resolve().parents[\(isFlat ? 0 : 2)]
    print((bundle / "\(resources)Welcome.txt").read_text(), end="")
    print("My bundle:   ", bundle)
    # The home of an app is the Data directory of its container.
    home = pathlib.Path.home()
    print("My container:", home)
    if not (home / "Documents").is_dir():
        sys.exit(f"There is no {home}/Documents, so nothing was written.")
    starts = home / "Documents" / "starts.txt"
    with starts.open("a") as file:
        print(datetime.datetime.now().isoformat(sep=" ", timespec="seconds"), file=file)
    print(f"Started {len(starts.read_text().splitlines())} times; see {starts}.")

    """
  }
}

/// A Swift package to begin with, of which `new-app --from` makes an app once it is built.
struct SwiftPackageTemplate {
  let name: String

  /// What the compiler takes as a name.
  private var target: String {
    let letters = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    return letters.first?.isLetter == true ? letters : "App" + letters
  }

  var files: [(path: String, text: String)] {
    [
      (
        "Package.swift",
        """
        // swift-tools-version: 5.9
        import PackageDescription

        let package = Package(name: "\(target)", targets: [.executableTarget(name: "\(target)")])

        """
      ),
      (
        "Sources/\(target)/main.swift",
        """
        // This app prints where it and its container are, and writes to its Documents directory.
        import Foundation

        print("Hello from \(target).")
        print("My program:  ", CommandLine.arguments.first ?? "")
        // The home of an app is the Data directory of its container.
        let home = ProcessInfo.processInfo.environment["HOME"] ?? "/"
        print("My container:", home)
        let starts = URL(fileURLWithPath: home + "/Documents/starts.txt")
        let before = (try? String(contentsOf: starts, encoding: .utf8)) ?? ""
        let all = before + "\\(Date())\\n"
        try all.write(to: starts, atomically: false, encoding: .utf8)
        print("Started \\(all.split(separator: "\\n").count) times; see \\(starts.path).")

        """
      ),
    ]
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Short sequences of operations have the results that they have in a plain directory, though the worker is
/// killed after each step.
///
/// A run does a share of them, and prints its seed. `Tests/Kills/sequences.py` does all.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SequenceTests {
  @Test(arguments: [[], ["-o", "nopassthrough"], ["-o", "nohandles"], ["-o", "cache=0"]])
  func eachIsAsInAPlainDirectory(options: [String]) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    try run(["--length", "2", "--share", "60"] + options)
    try run(["--length", "3", "--share", "8000"] + options)
  }

  /// In a user's own store.
  @Test func eachIsSoWithoutRoot() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    try run(["--length", "2", "--share", "60"], asNobody: true)
  }

  /// Four processes in two views do random operations; what fails is printed as a short sequence.
  @Test(arguments: [[], ["-o", "nopassthrough"]])
  func randomOperationsAreAsInTheModel(options: [String]) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    try run("model.py", ["--rounds", "8"] + options, ending: "8 rounds of 60 steps, 0 with differences\n")
  }

  /// What an app has open stays open, though another app has moved or removed it, and the worker is replaced.
  @Test(arguments: [
    "app1 hold x/a; app2 rename x/a y/a; restart; app2 unlink y/a",
    "app1 hold x/a; app2 rename x/a y/a; app2 unlink y/a; kill",
    "app1 hold x/a; app2 rename x y/b; app2 unlink y/b/a; restart",
    "app1 hold x/a; app2 rename x y/b; app2 unlink y/b/a; app2 rmdir y/b; kill",
    "app1 hold x/a; app1 link x/a y/a; app2 create x/b; app2 rename x/b y/a; restart; app2 unlink x/a",
    // What is done while there is no worker: the next one tells all views of it.
    "app1 hold y/b; kill; tree1 rmdir y/b",
    "app1 hold x/a; kill; tree1 unlink x/a",
    "tree1 hold x/a; kill; app1 unlink x/a",
    "app1 hold x/a; kill; app2 rename x/a y/a",
  ])
  func whatOthersHaveMovedStaysOpen(sequence: String) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    for options in [[], ["-o", "nopassthrough"], ["-o", "nohandles"]] {
      try run("model.py", [sequence] + options, ending: " 0 with differences\n")
    }
  }

  private func run(_ options: [String], asNobody: Bool = false) throws {
    try run("sequences.py", options, ending: "sequences, 0 with differences\n", asNobody: asNobody)
  }

  private func run(_ script: String, _ options: [String], ending: String, asNobody: Bool = false) throws {
    let words = ["/usr/bin/python3", Checkout.path("Tests/Kills/\(script)")] + options
    let environment = ["INSULA": Program.insula, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
    let result =
      try asNobody
      ? Program.runAsNobody(words, environment: environment) : Program.run(words, environment: environment)
    print(result.output)
    #expect(
      result.status == 0 && result.output.hasSuffix(ending), "\(options): \(result.output)\(result.errors)")
  }
}

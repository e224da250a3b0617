// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// A whole program, timed from its start to its end.
struct Program: Workload {
  let name: String
  let title: String
  let unit = Unit.runs
  /// Whether it runs until the sample's time is up: one that changes nothing, and is over long before that.
  let repeats: Bool
  /// What is run untimed before it, each with its exit code checked.
  private let preparation: @Sendable () throws(Failure) -> Void
  private let command: [String]
  private let codes: [Int32]

  init(
    _ name: String, _ title: String, command: [String], allowing codes: [Int32] = [0], repeats: Bool = false,
    preparation: @escaping @Sendable () throws(Failure) -> Void
  ) {
    self.name = name
    self.title = title
    self.command = command
    self.codes = codes
    self.repeats = repeats
    self.preparation = preparation
  }

  mutating func setUp() throws(Failure) { try preparation() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(1) { () throws(Failure) in try Child.run(command, allowing: codes) }
  }
}

extension Program {
  /// The rows that go over the tree of 20,000 files, in an order in which each leaves what the next needs.
  static func tree(_ samples: Samples) -> [any Workload] {
    let unpack: @Sendable () throws(Failure) -> Void = { () throws(Failure) in
      if !exists("tree") { try Child.run(["tar", "-xf", samples.treeArchive]) }
    }
    return [
      Program("untar", "untar 20,000 files", command: ["tar", "-xf", samples.treeArchive]) {
        () throws(Failure) in
        try Child.run(["rm", "-rf", "tree"])
        try Child.run(["cat", samples.treeArchive])
      },
      Program(
        "find", "find . -type f", command: ["find", "tree", "-type", "f"], repeats: true,
        preparation: unpack),
      Program(
        "grep", "grep -r, no match", command: ["grep", "-r", "InsulaIsNotInThere", "tree"], allowing: [1],
        preparation: unpack),
      Program("cp", "cp -a of them", command: ["cp", "-a", "tree", "copy"]) { () throws(Failure) in
        try unpack()
        try Child.run(["rm", "-rf", "copy"])
      },
      Program(
        "git-status", "git status", command: ["git", "-C", "tree", "status", "--porcelain"], repeats: true
      ) { () throws(Failure) in
        try unpack()
        try Child.run(["rm", "-rf", "copy"])
        if exists("tree/.git") { return }
        try Child.run(["git", "init", "-q", "tree"])
        // A low threshold streams all blobs into one pack: the repository is made fast, and status does not
        // read it.
        let quick = ["-c", "core.bigFileThreshold=1", "-c", "core.compression=0", "-c", "core.fsync=none"]
        try Child.run(["git", "-C", "tree"] + quick + ["add", "-A"])
        try Child.run(["git", "-C", "tree", "status", "--porcelain"])
      },
      Program("git-add", "git add of them", command: ["git", "-C", "tree", "add", "-A"]) {
        () throws(Failure) in
        try unpack()
        try Child.run(["rm", "-rf", "tree/.git"])
        try Child.run(["git", "init", "-q", "tree"])
      },
      Program("rm", "rm -rf of them", command: ["rm", "-rf", "tree"]) { () throws(Failure) in
        try unpack()
        try Child.run(["rm", "-rf", "tree/.git"])
      },
    ]
  }

  /// A build of 61 C files by two compilers at once.
  static func compile(_ samples: Samples) -> [any Workload] {
    [
      Program("compile", "make -j2, 61 C files", command: ["make", "-s", "-j2", "-C", "source"]) {
        () throws(Failure) in
        if !exists("source") { try Child.run(["tar", "-xf", samples.sourceArchive]) }
        try Child.run(["make", "-s", "-C", "source", "clean"])
      }
    ]
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// How much memory the serving process spends on each file that it and the kernel know.
struct MemoryGrowth {
  let contender: Contender
  let pid: pid_t
  let files: Int

  private static let filesPerDirectory = 1000
  /// What is known before the count starts: tables and thread stacks have their first size by then.
  private static let firstFiles = 10_000

  init(_ contender: Contender, files: Int) throws(Failure) {
    guard let pid = contender.pid else { throw Failure("--memory needs DIR:PID") }
    let least = 2 * Self.firstFiles
    guard files >= least else { throw Failure("--memory needs \(least) files or more") }
    self.contender = contender
    self.pid = pid
    self.files = files
  }

  /// Creates the files that are missing, walks them all, and gives the result as a line for people.
  func measure() throws(Failure) -> String {
    try makeDirectory("\(contender.directory)/memory")
    try check(chdir("\(contender.directory)/memory"), "chdir")
    defer { chdir("/") }
    let firstDirectories = Self.firstFiles / Self.filesPerDirectory
    let directories = files / Self.filesPerDirectory
    try visit(0..<firstDirectories)
    let before = try ProcessUsage.now(of: pid)
    let start = monotonicNanoseconds()
    try visit(firstDirectories..<directories)
    for directory in 0..<directories { try walk(directory) }
    let seconds = Double(monotonicNanoseconds() - start) / 1e9
    let after = try ProcessUsage.now(of: pid)
    let counted = Double((directories - firstDirectories) * Self.filesPerDirectory)
    func perFile(_ key: String) -> String {
      guard let old = before[key], let new = after[key] else { return "?" }
      return "\(Report.text(Double(new - old) * 1024 / counted)) bytes a file (\(old) kB to \(new) kB)"
    }
    return "\(contender.name): \(directories * Self.filesPerDirectory) files in \(Report.text(seconds)) s, "
      + "VmRSS \(perFile("VmRSS")), Pss \(perFile("Pss"))"
  }

  private func visit(_ directories: Range<Int>) throws(Failure) {
    for directory in directories {
      if !exists("\(directory)/\(Self.filesPerDirectory - 1)") {
        try makeDirectory("\(directory)")
        try Names("\(directory)/", count: Self.filesPerDirectory).create()
      }
      try walk(directory)
    }
  }

  private func walk(_ directory: Int) throws(Failure) {
    let names = Names("\(directory)/", count: Self.filesPerDirectory)
    var status = stat()
    for index in 0..<names.count { try check(stat(names[index], &status), "stat") }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What happens where libcrypto is not there, or another one.
@Suite struct MissingCryptoTests {
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("lib")
  }

  private func run(_ words: String...) throws -> ProgramResult {
    try Program.run(
      [Program.insula] + words,
      environment: [
        "LD_LIBRARY_PATH": temporary.appending("lib"), "HOME": temporary.path,
        "XDG_DATA_HOME": temporary.appending("data"), "XDG_RUNTIME_DIR": temporary.path,
      ])
  }

  /// No loader accepts an empty file; and the C library has no functions of OpenSSL.
  private func replaceLibrary(isEmpty: Bool) throws {
    let place = temporary.appending("lib/libcrypto.so.3")
    guard !isEmpty else {
      try temporary.write("", to: "lib/libcrypto.so.3")
      return
    }
    let maps = try #require(FD.text(of: "/proc/self/maps", limit: 1 << 22))
    let library = try #require(
      maps.split(separator: "\n").lazy.compactMap { $0.split(separator: " ").last.map(String.init) }
        .first { $0.hasSuffix("/libm.so.6") })
    try FileManager.default.copyItem(atPath: library, toPath: place)
  }

  @Test func whatNeedsNoneWorks() throws {
    try replaceLibrary(isEmpty: true)
    for words in [["version"], ["help"], ["completions", "bash"]] {
      let result = try Program.run(
        [Program.insula] + words, environment: ["LD_LIBRARY_PATH": temporary.appending("lib")])
      #expect(result.status == 0 && result.errors.isEmpty, "\(words) \(result.errors)")
    }
    #expect(try run("init", temporary.appending("store")).status == 0)
  }

  @Test(arguments: [true, false])
  func whatNeedsItSaysWhatIsMissing(isEmpty: Bool) throws {
    try replaceLibrary(isEmpty: isEmpty)
    let result = try run("identity", "new", "Anna")
    #expect(result.status == 1 && result.output.isEmpty, "\(result)")
    #expect(result.errors.hasPrefix("insula: can't load libcrypto: /"), "\(result.errors)")
    #expect(result.errors.contains("libcrypto.so.3: "), "\(result.errors)")
    #expect(result.errors.contains(isEmpty ? "file too short" : "undefined symbol: "), "\(result.errors)")
    #expect(
      result.errors.hasSuffix("; install OpenSSL 3 (on Debian the package libssl3t64 or libssl3)\n"),
      "\(result.errors)")
  }

  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func nothingIsMountedWithoutIt() throws {
    try replaceLibrary(isEmpty: true)
    let store = temporary.appending("store")
    #expect(try run("init", store).status == 0)
    try temporary.makeDirectory("mount")
    for words in [["mount"], ["mount", "--foreground"]] {
      let result = try Program.run(
        [Program.insula] + words + [store, temporary.appending("mount")],
        environment: ["LD_LIBRARY_PATH": temporary.appending("lib")])
      #expect(result.status == 1, "\(result)")
      #expect(result.errors.contains("can't load libcrypto: "), "\(result.errors)")
      #expect(result.errors.contains("; install OpenSSL 3"), "\(result.errors)")
    }
    #expect(FD.text(of: "/proc/self/mounts", limit: 1 << 22)?.contains(temporary.path) == false)
    // An upgrade to such a program does not take place.
    let rehearsal = try run("mount", "--can-take-over", LeftService.layout)
    #expect(rehearsal.status == 1 && rehearsal.errors.contains("can't load libcrypto: "), "\(rehearsal)")
  }

  /// The keeper has loaded it, so each worker has it from the start, and no request waits for it.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func daemonHasItBeforeItIsAsked() throws {
    let mounted = try MountedStore.mounted()
    let worker = try #require(try mounted.daemon())
    let status = try #require(FD.text(of: "/proc/\(worker)/status", limit: 1 << 16))
    let parent = try #require(
      status.split(separator: "\n").first { $0.hasPrefix("PPid:") }?.split(separator: "\t").last)
    let keeper = FD.text(of: "/proc/\(parent)/comm", limit: 64) == "insula\n" ? [String(parent)] : []
    for process in ["\(worker)"] + keeper {
      let maps = try #require(FD.text(of: "/proc/\(process)/maps", limit: 1 << 22))
      #expect(maps.contains("/libcrypto.so.3"), "\(process)")
    }
    #expect(try mounted.unmount().status == 0)
  }
}

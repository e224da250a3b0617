// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A path leads where the kernel says, and each step of it is shown.
@Suite struct PathWalkTests {
  private let temporary: TemporaryDirectory
  private var base: String { temporary.path }

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["a", "a/b", "c"] { try temporary.makeDirectory(name) }
    try temporary.write("x", to: "a/b/file")
    for (name, target) in [
      ("up", "../c"), ("whole", base + "/a"), ("chain", "first"), ("first", "a/b/up"), ("round", "round"),
      ("nowhere", "missing"), ("dots", "./a//b/.././b/"),
    ] { #expect(symlink(target, temporary.appending(name)) == 0) }
    #expect(symlink("../../c", temporary.appending("a/b/up")) == 0)
  }

  private func number(_ path: String) -> UInt64? {
    var status = FileStatus()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
  }

  private func walked(_ path: String) -> Result<UInt64, Errno> {
    do throws(Errno) {
      let found = try PathWalk.open(path) { _ throws(Errno) in }
      return .success(UInt64(try found.fd.status().st_ino))
    } catch {
      return .failure(error)
    }
  }

  @Test(
    arguments: [
      "a", "a/b", "a/b/file", "whole/b/file", "chain", "first/../a", "dots/file", "dots/up/..", "a/b/up/../c",
      "./a/./b//file", "a/b/", "whole/", "nowhere", "round", "missing", "a/b/file/x", "a/b/file/",
      "up/../../x",
    ])
  func leadsWhereTheKernelSays(path: String) {
    let whole = temporary.appending(path)
    var status = FileStatus()
    let expected: Result<UInt64, Errno> =
      stat(whole, &status) == 0 ? .success(UInt64(status.st_ino)) : .failure(Errno.last)
    #expect(walked(whole) == expected)
  }

  @Test func linksOfProcessesLeadToWhatTheyAreOf() throws {
    #expect(walked("/") == .success(try #require(number("/"))))
    #expect(walked("/proc/self/root/tmp") == .success(try #require(number("/tmp"))))
    #expect(walked("/proc/self/cwd") == .success(try #require(number("."))))
    #expect(walked(".") == .success(try #require(number("."))))
    #expect(walked("") == .failure(.ENOENT))
  }

  @Test func eachStepIsShown() throws {
    var directories: [String] = []
    var links = 0
    let top = base.utf8.count
    let found = try PathWalk.open(temporary.appending("chain/../a/b")) { (step) throws(Errno) in
      switch step {
      case .directory(let directory, let status):
        #expect(status.isDirectory)
        let path = String(decoding: try directory.ownPath(), as: UTF8.self)
        if path.hasPrefix(base) { directories.append(String(path.utf8.dropFirst(top)) ?? "?") }
      case .link: links += 1
      }
    }
    let inode = UInt64(try found.fd.status().st_ino)
    #expect(inode == number(temporary.appending("a/b")))
    // chain, first, a and b, up, two ways up, c, one way up, a and b.
    #expect(directories == ["", "", "", "/a", "/a/b", "/a/b", "/a", "", "/c", "", "/a"] && links == 3)
  }

  @Test func aStepIsRefused() throws {
    #expect(throws: Errno.EPERM) {
      _ = try PathWalk.open(temporary.appending("whole/b")) { (step) throws(Errno) in
        if case .link = step { throw .EPERM }
      }
    }
    #expect(throws: Errno.EPERM) {
      let wanted = number(base)
      _ = try PathWalk.open(temporary.appending("a")) { (step) throws(Errno) in
        if case .directory(_, let status) = step, wanted == UInt64(status.st_ino) { throw .EPERM }
      }
    }
  }

  @Test(
    arguments: [
      ("         0          0 4294967295\n", true), ("0 100000 65536\n", true), ("0 1000 1\n", false),
      ("0 100000 65534\n", false), ("0 100000 65535", true), ("0 0 10\n65534 5 1\n", true), ("", false),
      ("x y z\n65534 1", false), ("65534 1 18446744073709551615", true),
    ])
  func nobodyIsSomebodyWhereTheNumberIsMapped(map: String, isMapped: Bool) {
    #expect(ProcessID.isMapped(65_534, by: map) == isMapped)
  }
}

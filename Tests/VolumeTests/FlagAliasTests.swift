// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// The flags as an attribute that programs copy.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct FlagAliasTests {
  private static let copied = "user.org.insula.flags"
  private let file = "Users/Shared/file"

  private func fixture(seconds: Double) throws -> Tree {
    let tree = try Tree { $0.flagsArrivingSeconds = seconds }
    try tree.view.make(file, mode: 0o666, by: .alice)
    return tree
  }

  private func bring(_ words: String, in tree: Tree, by caller: Caller) -> Errno? {
    tree.view.errnoOfWorker { [file] v throws(Errno) in
      try v.setAttribute(Self.copied, of: file, to: Array(words.utf8), by: caller)
    }
  }

  private func mode(_ mode: UInt32, in tree: Tree, by caller: Caller) -> Errno? {
    tree.view.errnoOfWorker { [file] v throws(Errno) in try v.change(file, by: caller) { $0.mode = mode } }
  }

  @Test func flagsAreSeenWhereThereAreSome() throws {
    let tree = try fixture(seconds: 0)
    let view = tree.view
    #expect(try view.attributeNames(of: file) == [])
    #expect(view.errno { v throws(Errno) in try v.attribute(Self.copied, of: file) } == .ENODATA)
    try view.setFlags(file, "hidden,nodump")
    #expect(try view.attributeNames(of: file, by: .bob) == [Self.copied])
    #expect(
      String(decoding: try view.attribute(Self.copied, of: file, by: .bob), as: UTF8.self) == "nodump,hidden")
    #expect(bring("", in: tree, by: .alice) == nil)
    #expect(try view.flags(of: file) == "" && view.attributeNames(of: file) == [])
    try view.setFlags(file, "uchg,schg")
    #expect(
      view.errno { v throws(Errno) in try v.removeAttribute(Self.copied, of: file, by: .alice) } == .EPERM)
    try view.removeAttribute(Self.copied, of: file)
    #expect(try view.flags(of: file) == "")
  }

  @Test func flagsAreBroughtByWhoMaySetThem() throws {
    let tree = try fixture(seconds: 100)
    for words in ["uchg", "hidden", "uappnd,nodump,opaque"] {
      #expect(bring(words, in: tree, by: .bob) == .EPERM)
      #expect(bring(words, in: tree, by: .alice) == nil)
      #expect(bring("", in: tree, by: .alice) == nil)
    }
    for words in ["schg", "sappnd", "arch", "sunlnk", "uchg,schg", "hidden,arch"] {
      #expect(bring(words, in: tree, by: .alice) == .EPERM)
      #expect(try tree.view.flags(of: file) == "")
      #expect(bring(words, in: tree, by: .root) == nil)
      #expect(bring("", in: tree, by: .alice) == .EPERM)
      #expect(bring("", in: tree, by: .root) == nil)
    }
    for words in ["nonsense", "uchg hidden nonsense", "\u{0}", "uchg\u{0}"] {
      #expect(bring(words, in: tree, by: .root) == .EINVAL, "\(words)")
    }
  }

  @Test func flagsThatArriveHoldForOthersAtOnce() throws {
    let tree = try fixture(seconds: 1)
    try tree.view.setACL(file, AccessControlEntry(.permit, .bob, .writeSecurity))
    #expect(bring("uchg", in: tree, by: .alice) == nil)
    #expect(mode(0o644, in: tree, by: .alice) == nil)
    #expect(mode(0o666, in: tree, by: .bob) == .EPERM)
    #expect(mode(0o666, in: tree, by: .root) == .EPERM)
    usleep(1_100_000)
    #expect(mode(0o666, in: tree, by: .alice) == .EPERM)
    // To bring what is there already begins nothing again.
    #expect(bring("uchg", in: tree, by: .alice) == nil)
    #expect(mode(0o666, in: tree, by: .alice) == .EPERM)
    #expect(try tree.view.flags(of: file) == "uchg")
  }

  /// What root has set holds, whatever its owner brings besides.
  @Test func flagsOfOthersHoldMeanwhile() throws {
    let tree = try fixture(seconds: 100)
    try tree.view.setFlags(file, "schg")
    #expect(bring("schg,uchg", in: tree, by: .alice) == nil)
    #expect(mode(0o644, in: tree, by: .alice) == .EPERM)
    try tree.view.setFlags(file, "uchg")
    // Now it has been meant.
    #expect(mode(0o644, in: tree, by: .alice) == .EPERM)
    #expect(bring("", in: tree, by: .alice) == nil && bring("uchg", in: tree, by: .alice) == nil)
    #expect(mode(0o644, in: tree, by: .alice) == nil)
    try tree.view.setFlags(file, "uchg", by: .alice)
    #expect(mode(0o644, in: tree, by: .alice) == .EPERM)
  }

  /// A directory can be filled by who brought its flags, for as long as that goes on.
  @Test func directoriesAreFilled() throws {
    let tree = try fixture(seconds: 1)
    let view = tree.view
    try view.makeDirectory("Users/Shared/dir", mode: 0o777, by: .alice)
    try view.setAttribute(Self.copied, of: "Users/Shared/dir", to: Array("uchg".utf8), by: .alice)
    for name in 0..<8 {
      #expect(
        view.errnoOfWorker { v throws(Errno) in try v.make("Users/Shared/dir/\(name)", by: .alice) } == nil)
      #expect(
        view.errnoOfWorker { v throws(Errno) in try v.make("Users/Shared/dir/bob\(name)", by: .bob) }
          == .EPERM)
      #expect(
        view.errnoOfWorker { v throws(Errno) in try v.remove("Users/Shared/dir/\(name)", by: .bob) } == .EPERM
      )
      usleep(300_000)
    }
    #expect(view.errnoOfWorker { v throws(Errno) in try v.remove("Users/Shared/dir/0", by: .alice) } == nil)
    usleep(1_100_000)
    #expect(
      view.errnoOfWorker { v throws(Errno) in try v.remove("Users/Shared/dir/1", by: .alice) } == .EPERM)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Volume

/// A volume with a view of the whole tree and views of an app that has nothing but what it is granted.
final class GrantedMounts {
  /// The numbers of grants that have changed.
  final class Told: Sendable {
    private let numbers = Mutex<Set<Int64>>([])
    func add(_ new: [Int64]) { numbers.withLock { $0.formUnion(new) } }
    var all: Set<Int64> { numbers.withLock { $0 } }
  }

  let mounts: SeveralMounts
  let app: AppIdentifier
  let told = Told()
  private var last: Int64 = 0

  var volume: Volume { mounts.volume }

  init(views: Int = 1, rootless: Bool = false) throws {
    app = try #require(AppIdentifier("com.example.editor"))
    mounts = try SeveralMounts(views + 1, rootless: rootless, app: app)
    volume.tellGrants { [told] numbers, _ in told.add(numbers) }
  }

  /// The path of something in `Users/Shared` in the whole tree, and in a view of the app's.
  func all(_ name: String) -> String { mounts.path(0, name) }
  func own(_ name: String, view: Int = 1) -> String { mounts.path(view, name) }

  func makeDirectories(_ names: String...) throws {
    for name in names { try #require(mkdir(all(name), 0o777) == 0) }
  }

  func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard file >= 0 else { throw Errno.last }
    defer { close(file) }
    guard Glibc.write(file, text, text.utf8.count) == text.utf8.count else { throw Errno.last }
  }

  func text(_ path: String) -> String? {
    (FileManager.default.contents(atPath: path)).map { String(decoding: $0, as: UTF8.self) }
  }

  func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  static func names(_ name: String) -> [[UInt8]] { GrantPath.names(Array("Users/Shared/\(name)".utf8)) }

  @discardableResult
  func grant(_ name: String, writing: Bool = true) throws -> Int64 {
    let path = Self.names(name)
    let chosen = try volume.choose(
      path, by: Credentials(uid: 0, gid: 0), isMember: { _ in .notMember }, writing: writing)
    last += 1
    try volume.grant(
      GrantRecord(
        id: last, identifier: app, user: 0, team: Team("T", root: nil), path: path, isWritable: writing,
        isDirectory: chosen.isDirectory, identity: chosen.identity, granted: 0))
    return last
  }

  /// Where a grant is now, below `Users/Shared`.
  func place(_ id: Int64) -> String? {
    volume.granted([id]).first.map { record in
      String(decoding: GrantPath.path(record.path.dropFirst(2)), as: UTF8.self)
    }
  }

  func rename(_ old: String, _ new: String, exchanging: Bool = false) throws {
    let flags = exchanging ? UInt32(CLX_RENAME_EXCHANGE) : 0
    guard clx_renameat2(AT_FDCWD, old, AT_FDCWD, new, flags) == 0 else { throw Errno.last }
  }
}

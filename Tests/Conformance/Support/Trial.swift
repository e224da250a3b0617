// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Ids that a process can take on.
package struct Person: Sendable {
  var uid: UInt32
  var gid: UInt32
  var groups: [UInt32] = []

  /// Someone with these ids; `groups` are the supplementary ones.
  package init(uid: UInt32, gid: UInt32, groups: [UInt32] = []) {
    self.uid = uid
    self.gid = gid
    self.groups = groups
  }

  static let root = Person(uid: 0, gid: 0)

  func joining(_ group: gid_t) -> Person { Person(uid: uid, gid: gid, groups: groups + [group]) }

  /// Becomes this person for good.
  ///
  /// The raw calls act on one thread, which is all this process has.
  package func assume() throws {
    guard setgroups(groups.count, groups) == 0, clx_thread_setresgid(gid) == 0, clx_thread_setresuid(uid) == 0
    else { throw Failure(text: "can't take on uid \(uid), gid \(gid): \(errnoName(errno))") }
  }
}

/// What a check's body works with.
///
/// The working directory is the check's own, empty at the start, so plain relative names do.
struct Trial: ~Copyable {
  let user: Person
  let peer: Person
  /// Whether a new object is expected to take its directory's group.
  let inheritsGroup: Bool
  /// Whether what the filesystem lacks is a failure, as where it is compared with one that has it.
  let lacksNothing: Bool
}

/// "ENOENT" rather than 2.
func errnoName(_ error: Int32) -> String {
  guard error != 0 else { return "success" }
  guard let name = clx_errno_name(error) else { return "errno \(error)" }
  return String(cString: name)
}

// What a body states. `fileID` and `line` lead to the statement that did not hold.
extension Trial {
  /// The call succeeds.
  @discardableResult
  func ok<T: SignedInteger>(
    _ call: @autoclosure () throws -> T, file: StaticString = #fileID, line: UInt = #line
  ) throws -> T {
    let result = try call()
    let error = errno
    guard result != -1 else {
      throw Failure(text: "expected success, saw \(errnoName(error)) (\(file):\(line))")
    }
    return result
  }

  /// The call fails, and with this errno.
  func fails<T: SignedInteger>(
    _ expected: Int32, _ call: @autoclosure () throws -> T, file: StaticString = #fileID, line: UInt = #line
  ) throws {
    try fails(oneOf: [expected], call(), file: file, line: line)
  }

  /// The call fails with one of these, where POSIX leaves a choice.
  func fails<T: SignedInteger>(
    oneOf expected: [Int32], _ call: @autoclosure () throws -> T, file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    let result = try call()
    let error = result == -1 ? errno : 0
    guard !expected.contains(error) else { return }
    let names = expected.map(errnoName).joined(separator: " or ")
    throw Failure(text: "expected \(names), saw \(errnoName(error)) (\(file):\(line))")
  }

  func equal<T: Equatable>(
    _ seen: T, _ expected: T, _ what: String, file: StaticString = #fileID, line: UInt = #line
  ) throws {
    guard seen != expected else { return }
    throw Failure(text: "expected \(what) \(brief(expected)), saw \(brief(seen)) (\(file):\(line))")
  }

  func expect(
    _ holds: Bool, _ what: String, file: StaticString = #fileID, line: UInt = #line
  ) throws {
    guard !holds else { return }
    throw Failure(text: "expected \(what), saw otherwise (\(file):\(line))")
  }

  /// Skips the check where the kernel or the filesystem does not know the call at all.
  func probe<T: SignedInteger>(_ what: String, _ call: @autoclosure () throws -> T) throws {
    guard try call() == -1, [EOPNOTSUPP, ENOSYS, ENOTTY].contains(errno) else { return }
    throw lacking("\(what) is not supported here (\(errnoName(errno)))")
  }

  /// Skips the check on small blocks: ext4 keeps a symlink's target, and all xattrs of a file, in one block.
  func needsFullBlocks() throws {
    var info = statvfs()
    try ok(statvfs(".", &info))
    if info.f_frsize < 4096 { throw Skip(reason: "blocks of \(info.f_frsize) bytes, and these need 4096") }
  }

  /// What to throw when the filesystem lacks what the check is about.
  func lacking(_ what: String) -> any Error { lacksNothing ? Failure(text: what) : Skip(reason: what) }

  /// Values are shown on one line, cut where they get long.
  private func brief<T>(_ value: T) -> String {
    let text = "\(value)"
    return text.utf8.count > 120 ? "\(text.prefix(120))..." : text
  }
}

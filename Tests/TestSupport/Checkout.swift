// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO

/// The sources and the programs that tests use, at a path that everybody reaches and that a shell takes as
/// one word.
///
/// A clone may be below a closed home, in a path with blanks, or in a mounted tree. Tests become other users
/// and write paths into scripts, so for such a clone they use a copy.
package enum Checkout {
  /// Where the sources are.
  package static let root: String = copy ?? original

  /// Where the programs are that the package builds.
  package static let programs: String = copy.map { $0 + "/programs" } ?? built

  /// A file of the sources, by its path in them.
  package static func path(_ name: String) -> String { root + "/" + name }

  private static let original: String = {
    var url = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { url.deleteLastPathComponent() }
    return url.path
  }()

  /// The tests are there, too.
  private static let built: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().path
  }()

  private static let copy: String? = {
    guard let problem = problem(of: original) ?? problem(of: built) else { return nil }
    do {
      return try makeCopy()
    } catch {
      print("The tests need a copy of the clone, since \(problem), and can't make it: \(error)")
      return nil
    }
  }()

  /// Why tests can't use what is at a path; nil if they can.
  package static func problem(of path: String) -> String? {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-")
    guard path.allSatisfy(plain.contains) else { return "'\(path)' is not one plain word for a shell" }
    var place = ""
    for name in path.split(separator: "/") {
      place += "/" + name
      var status = FileStatus()
      guard stat(place, &status) == 0, status.st_mode & 0o005 == 0o005 else {
        return "not every user can open '\(place)'"
      }
    }
    let mounts = try? MountTable.current()
    let types = mounts?.entries.filter { "\(path)/".hasPrefix($0.mountPoint + "/") }.map(\.type) ?? []
    return types.contains { $0.hasPrefix("fuse") } ? "'\(path)' is in a filesystem of a program" : nil
  }

  private static func makeCopy() throws -> String {
    var template = Array("/tmp/insula-clone-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno.last }
    let place = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    atexit {
      guard Checkout.root.hasPrefix("/tmp/insula-clone-"), let parent = try? TemporaryDirectory.open("/tmp")
      else { return }
      try? String(Checkout.root.dropFirst("/tmp/".count)).withName { (name) throws(Errno) in
        try parent.fd.removeTree(name)
      }
    }
    let result = try Program.run([
      "sh", "-ec",
      """
      tar -C "$1" --exclude=./.build --exclude=./.git -c . | tar -C "$2" -x --no-same-owner
      mkdir "$2/programs"
      find "$3" -maxdepth 1 -type f -perm -100 ! -name '*.xctest' -exec cp {} "$2/programs" ';'
      chmod -R a+rX,go-w "$2"
      """, "sh", original, place, built,
    ])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return place
  }
}

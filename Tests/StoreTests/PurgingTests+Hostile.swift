// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

// What a hostile app, its user or a neighbour may prepare before a purge, or do meanwhile:
//
// - names without end, too long, too deep, of no text, and files that claim to be endless: `allOfItGoes`
// - other names of files that are to stay: `otherNamesOfFilesStay`
// - what can't be moved by itself: `whatCannotBeMovedBackIsPutBeside`, `mountsAreNotEntered`
// - so many files of others that putting them back takes long: `whatOthersPlantedIsPutBackAtOnce`
// - times of other centuries, to keep one's own: `timesOfOtherCenturiesAreOrdered`
// - a purge that is given up in the middle: `whatWasGivenUpIsFinished`
// - a directory of somebody else in the place of the old one: `directoriesOfOthersGetNothing`
// - a link or another directory there while it is taken: `PurgingTests`

/// Purges of what somebody has prepared for them.
extension PurgingTests {
  @discardableResult
  private func inCaches(_ script: String) throws -> String { try shell("cd Library/Caches\n" + script) }

  @Test(arguments: [
    "touch $(printf '%0255d' 7) $'\\xff\\xfe' $'\\e[31m' '.removing-1' '.left-x'; mkdir $(printf '%0255d' 8)",
    "for i in $(seq 250); do mkdir $(printf '%0200d' $i); cd $(printf '%0200d' $i); touch f; done",
    "mkdir $(seq 3000); touch 7/{1..3000}", "truncate -s 15T 1 2 3; ln 1 4; ln -s . loop; ln -s loop/loop l",
    "mkfifo p; mkdir -m 0 d; mkdir -m 7777 s; touch -d @-2000000000 old; touch -d @9000000000 new",
    "mkdir a; setfacl -m u:daemon:--- a; touch a/x; chmod 555 a .; setfacl -d -m u::r a",
  ])
  func allOfItGoes(script: String) throws {
    try inCaches("export LC_ALL=C; as_owner bash -ec \"$(cat <<'END'\n\(script)\nEND\n)\"")
    let expected = try containers.measure(.caches, of: record)
    let purge = try purge()
    #expect(purge.left.isEmpty && purge.freed.count == expected.count + 1)
    #expect(names(caches) == [] && names(staging) == [])
  }

  /// Their bytes are not freed, and nobody says so.
  @Test func otherNamesOfFilesStay() throws {
    try inCaches(
      "as_owner sh -ec 'head -c 500000 /dev/zero >../../Documents/a; ln ../../Documents/a a; ln a b'")
    #expect(try containers.measure(.caches, of: record).bytes == 0)
    // What goes is the directory itself, which another one has replaced.
    #expect(try purge().freed.bytes < 100_000)
    #expect(names(data + "/Documents") == ["a"])
  }

  /// Root alone can protect files in such a way, and may have done it in the store.
  @Test func whatCannotBeMovedBackIsPutBeside() throws {
    try inCaches("as_owner touch a held; chattr +i held")
    defer { _ = try? inCaches("chattr -R -i ../../../../") }
    let left = try purge().left
    #expect(left.count == 1 && left.first?.path.hasSuffix("/held") == true, "\(left)")
    #expect(left.allSatisfy { FileManager.default.fileExists(atPath: fixture.path + "/tree/" + $0.path) })
    #expect(names(caches) == [] && names(staging) == [])
    // And nothing stands in the way of the next one.
    try inCaches("as_owner touch b")
    #expect(try purge().left.isEmpty && names(caches) == [])
  }

  /// Neither another filesystem nor another place of this one.
  @Test(arguments: ["-t tmpfs none", "--bind ../../Documents"]) func mountsAreNotEntered(mount: String) throws
  {
    try inCaches(
      "as_owner mkdir d d/m; as_owner touch d/goes ../../Documents/kept; "
        + "mount \(mount) d/m; as_owner touch d/m/kept"
    )
    defer { _ = try? inCaches("findmnt -rno TARGET | grep -F '\(fixture.path)/tree/' | xargs -r umount -l") }
    let left = try purge().left
    #expect(left.map(\.reason) == ["the backing filesystem refuses to remove it"], "\(left)")
    let path = try #require(left.first).path
    #expect(FileManager.default.fileExists(atPath: "\(fixture.path)/tree/\(path)/kept"))
    #expect(names(data + "/Documents").contains("kept"))
    #expect(!FileManager.default.fileExists(atPath: caches + "/d/goes") && names(staging) == [])
  }

  /// Putting each of them back to the disk by itself took minutes.
  @Test func whatOthersPlantedIsPutBackAtOnce() throws {
    try inCaches("touch {1..3000}; as_owner touch {3001..4000}")
    #expect(try containers.measure(.caches, of: record).count == 1000)
    let purge = try purge()
    #expect(purge.left.count == OwnersRemoval.most && purge.freed.count == 1000)
    #expect(names(caches).count == 3000 && names(staging) == [])
    #expect(try self.purge().freed.count == 0)
  }

  @Test func timesOfOtherCenturiesAreOrdered() throws {
    try inCaches(
      """
      as_owner sh -ec 'for f in a b c d; do head -c 65536 /dev/zero >$f; done
        touch -d @-2000000000 c; touch -d @4102444800 a; touch -d @0 d'
      """)
    for left in [["a", "b", "d"], ["a", "b"], ["a"]] {
      #expect(try purge(enough: 1).left.isEmpty)
      #expect(names(caches) == left)
    }
  }

  @Test func whatWasGivenUpIsFinished() throws {
    try inCaches(
      "as_owner sh -ec 'mkdir a; touch a/1 a/2 a/3 b c; echo x >../../Documents/kept'; touch roots")
    var count = 0
    let error = #expect(throws: Errno.self) {
      try purge { () throws(Errno) in
        count += 1
        if count == 3 { throw .EINTR }
      }
    }
    #expect(error == .EINTR && names(caches) == [] && names(staging).count == 1)
    try containers.finishPurges()
    #expect(names(caches) == ["roots"] && names(staging) == [] && names(data + "/Documents") == ["kept"])
  }

  @Test func directoriesOfOthersGetNothing() throws {
    try inCaches("touch roots; mkdir ../Roots")
    let caches = caches
    let purge = try containers.purge(.caches, of: record, rest: {}) { (step) throws(Errno) in
      try step()
      #expect(rename(caches, caches + ".old") == 0 && rename(data + "/Library/Roots", caches) == 0)
    }
    #expect(names(caches) == [] && names(staging) == [])
    let left = try #require(purge.left.first)
    #expect(FileManager.default.fileExists(atPath: "\(fixture.path)/tree/\(left.path)"), "\(left)")
  }
}

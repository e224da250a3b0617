// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What an export makes in a directory that may be somebody else's.
@Suite struct ExportPlaceTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  /// Makes something and gives the name that it has until it is whole.
  private func put(_ fill: (String, FD) throws(Errno) -> Void) throws {
    let directory = try temporary.open()
    let before = Set(try temporary.names())
    try ExportPlace(parent: directory.fd, name: "E").put { (made) throws(Errno) in
      try made.makeDirectory("deep", mode: 0o700)
      let names = (try? temporary.names()) ?? []
      guard let name = names.first(where: { !before.contains($0) }) else { throw .ENOENT }
      try fill(name, made)
    }
  }

  @Test func whatIsMadeIsThereWholeOrNotAtAll() throws {
    #expect(throws: Errno.EIO) { try put { _, _ throws(Errno) in throw .EIO } }
    #expect(try temporary.names() == [])
    try put { _, _ in }
    #expect(try temporary.names() == ["E"] && temporary.names(in: "E") == ["deep"])
    #expect(throws: Errno.EEXIST) { try put { _, _ in } }
    #expect(try temporary.names() == ["E"])
  }

  /// The attack: whoever owns the directory gives the name of what is made to something of others meanwhile.
  @Test(arguments: [false, true]) func nothingOfOthersIsRemovedOrPublished(fails: Bool) throws {
    try temporary.makeDirectory("mine")
    try temporary.write("thesis", to: "mine/thesis")
    var taken = ""
    #expect(throws: fails ? Errno.EIO : Errno.ESTALE) {
      try put { name, _ throws(Errno) in
        taken = name
        let path = temporary.path + "/"
        guard rename(path + name, path + "gone") == 0, rename(path + "mine", path + name) == 0 else {
          throw .EACCES
        }
        if fails { throw .EIO }
      }
    }
    #expect(temporary.text(of: taken + "/thesis") == "thesis")
    #expect(try temporary.names(in: "gone") == [] && !temporary.names().contains("E"))
  }
}

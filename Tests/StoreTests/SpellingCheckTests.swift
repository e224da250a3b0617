// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

@Suite struct SpellingCheckTests {
  /// Only in a store in which they are one name.
  @Test(arguments: [false, true]) func equalNamesAreFound(ignoresCase: Bool) throws {
    let store = try TestStore(ignoresCase: ignoresCase)
    for name in ["Caf\u{E9}", "x", "X", "other"] {
      try store.temporary.makeDirectory("store/tree/Users/Shared/\(name)")
    }
    let shared = try TemporaryDirectory.open(store.path + "/tree/Users/Shared")
    try Array("cafe\u{301}".utf8).withName { (name) throws(Errno) in
      try shared.fd.makeDirectory(name, mode: 0o755)
    }
    try [0x61, 0xff].withName { (name) throws(Errno) in try shared.fd.makeDirectory(name, mode: 0o755) }
    var check = try StoreCheck(try store.open(), repairing: false)
    try check.run()
    let problems = check.findings.map(\.problem)
    #expect(problems.filter { $0.contains("the same name as") }.count == (ignoresCase ? 2 : 0))
    #expect(problems.filter { $0.contains("not valid text") }.count == (ignoresCase ? 1 : 0))
    #expect(problems.count == (ignoresCase ? 3 : 0), "\(problems)")
  }

  @Test func otherSpellingsAreRefused() throws {
    let store = try TestStore(ignoresCase: true)
    try store.temporary.makeDirectory("store/tree/Users/Shared/Letter")
    let opened = try store.open()
    let shared = try TemporaryDirectory.open(store.path + "/tree/Users/Shared")
    #expect(throws: Errno.EEXIST) { try opened.refuseOtherSpelling(of: "LETTER", in: shared.fd) }
    try opened.refuseOtherSpelling(of: "Letter", in: shared.fd)
    try opened.refuseOtherSpelling(of: "Letters", in: shared.fd)
  }
}

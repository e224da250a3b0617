// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport
internal import Testing

/// What may be cached for all: only what is refused to nobody.
@Suite struct OpennessTests {
  @Test(arguments: searchable)
  func onlyDirectoriesOpenToAllAreSearchableByAll(row: String) throws {
    let cells = try Table.cells(row, 3)
    let directory = Object(
      uid: 1, gid: 10, mode: try Table.mode(cells[1]), kind: .directory, zone: .user,
      acl: try Table.acl(cells[0]))
    #expect(isSearchableByAll(directory) == (cells[2] == "open"))
  }

  // ACL | mode | open or closed
  static let searchable = Table.rows(
    """
    none | 111 | open
    none | 755 | open
    none | 711 | open
    none | 110 | closed
    none | 101 | closed
    none | 011 | closed
    none | 750 | closed
    none | 666 | closed
    empty | 755 | open
    empty | 750 | closed
    damaged | 777 | closed
    everyone +search | 755 | open
    everyone +search | 750 | closed
    everyone -search | 755 | closed
    u4 -search | 755 | closed
    g50 -search | 755 | closed
    owner -search | 755 | closed
    group -search | 755 | closed
    foreign -search | 755 | closed
    nobody -search | 755 | open
    everyone -list | 755 | open
    everyone -delete | 755 | open
    everyone -list,search | 755 | closed
    everyone -EXECUTE | 755 | closed
    everyone -ALL | 755 | closed
    everyone -READ | 755 | open
    everyone -search [only] | 755 | open
    everyone -search [file,dir] | 755 | closed
    everyone ?search | 755 | open
    everyone +search;u4 -search | 755 | closed
    """)

  @Test(arguments: attributes)
  func attributesAreRefusedByACLsOnly(row: String) throws {
    let cells = try Table.cells(row, 2)
    let object = Object(
      uid: 1, gid: 10, mode: 0, kind: .file, zone: .user, acl: try Table.acl(cells[0]))
    #expect(mayRefuseAttributes(object) == (cells[1] == "refused"))
  }

  // ACL | shown or refused
  static let attributes = Table.rows(
    """
    none | shown
    empty | shown
    damaged | refused
    everyone +readattr | shown
    everyone -readattr | refused
    everyone -readsecurity | refused
    u4 -readattr | refused
    g50 -readsecurity | refused
    foreign -readattr | refused
    nobody -readattr | shown
    everyone -read,write,execute,readextattr | shown
    everyone -READ | refused
    everyone -WRITE | shown
    everyone -ALL | refused
    everyone -readattr [only] | shown
    everyone !readattr | shown
    everyone +readattr;everyone -readattr | refused
    """)

  /// What is said to be open to all is refused to nobody, whoever asks.
  @Test func whatIsOpenToAllIsRefusedToNobody() {
    var questions = Questions(seed: 7)
    var open = 0
    var shown = 0
    for _ in 0..<100_000 {
      let question = questions.question()
      let caller = question.naive.caller
      let credentials = Credentials(uid: caller.uid, gid: caller.gid)
      if question.object.isDirectory, isSearchableByAll(question.object) {
        open += 1
        #expect(decide(.search, on: question.object, by: credentials) { _ in .unknown } == .allow)
      }
      if !mayRefuseAttributes(question.object) {
        shown += 1
        let rights: Rights = [.readAttributes, .readSecurity]
        #expect(decide(rights, on: question.object, by: credentials) { _ in .unknown } == .allow)
      }
    }
    #expect(open > 1_000)
    #expect(shown > 1_000)
  }
}

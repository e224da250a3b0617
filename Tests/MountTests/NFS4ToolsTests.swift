// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whether the tools are there that these tests run.
private let toolsAreThere: Bool = {
  let tools = "command -v nfs4_getfacl nfs4_setfacl getfattr setfattr"
  return MountedStore.isPossible && (try? Program.run(["sh", "-c", tools]).status) == 0
}()

/// ACLs as nfs4-acl-tools see them, with real users.
@Suite(
  .enabled(if: toolsAreThere, "mounting needs root and /dev/fuse, and the tests nfs4-acl-tools and attr"),
  .serialized)
struct NFS4ToolsTests {
  private let mounted: MountedStore
  private let place: String
  private let anna: TemporaryAccount
  private let otto: TemporaryAccount

  init() throws {
    mounted = try MountedStore.mounted()
    place = mounted.path("Users/Shared/lists")
    anna = try TemporaryAccount()
    otto = try TemporaryAccount()
    _ = try Program.run(["mkdir", "-m", "755", place])
  }

  /// Runs a line of shell in `place`, as somebody or as root; $ANNA and $OTTO are the names of two users.
  private func shell(_ line: String, as account: TemporaryAccount? = nil) throws -> ProgramResult {
    let become = account.map {
      ["setpriv", "--reuid=\($0.account.uid)", "--regid=\($0.account.gid)", "--clear-groups"]
    }
    let names = ["ANNA": anna.account.name, "OTTO": otto.account.name]
    return try Program.run((become ?? []) + ["sh", "-c", line], environment: names, in: place)
  }

  private func expect(
    _ line: String, as account: TemporaryAccount? = nil, location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shell(line, as: account)
    #expect(result.status == 0, "\(line): \(result.errors)", sourceLocation: location)
  }

  /// The line fails, with these words among its complaints.
  private func refuse(
    _ line: String, as account: TemporaryAccount? = nil, _ words: String = "", ending: Ending? = nil,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shell(line, as: account)
    // The tools end with -1 when the system refuses it.
    let ending = ending ?? (line.hasPrefix("nfs4_") ? Ending(255) : nil)
    let isRefused = ending.map { result.ending == $0 } ?? result.isRefusal
    #expect(isRefused, "\(line): \(result)", sourceLocation: location)
    #expect(
      words.isEmpty || (result.output + result.errors).contains(words), "\(line): \(result)",
      sourceLocation: location)
  }

  /// The entries that nfs4_getfacl shows, with the names of the two users as `anna` and `otto`.
  private func entries(of file: String, as account: TemporaryAccount? = nil) throws -> [String] {
    let result = try shell("nfs4_getfacl \(file)", as: account)
    return result.output.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }.map {
      $0.replacing(anna.account.name, with: "anna").replacing(otto.account.name, with: "otto")
    }
  }

  @Test(
    arguments: [
      ("f", "640", ["A::OWNER@:rwatTnNcC", "A:g:GROUP@:rtnc", "A::EVERYONE@:tc"]),
      ("f", "604", ["A::OWNER@:rwatTnNcC", "D:g:GROUP@:rn", "A:g:GROUP@:tc", "A::EVERYONE@:rtnc"]),
      ("d", "750", ["A::OWNER@:rwaDxtTnNcC", "A:g:GROUP@:rxtnc", "A::EVERYONE@:tc"]),
      ("d", "1777", ["A::OWNER@:rwaDxtTnNcC", "A:g:GROUP@:rwaxtTnNc", "A::EVERYONE@:rwaxtTnNc"]),
    ])
  func modeIsShownWhereThereIsNoACL(kind: String, mode: String, shown: [String]) throws {
    try expect("\(kind == "d" ? "mkdir x" : "touch x") && chmod \(mode) x")
    #expect(try entries(of: "x") == shown)
    // To ask is not to set.
    #expect(try shell("getfattr -m - x").output.isEmpty)
  }

  @Test func aclComesBackAsItWasSet() throws {
    try expect("touch f && mkdir d")
    let typed = [
      "D::anna:w", "A::anna:rxtncy", "A:g:root:rwatTnNcC", "A::12345:r", "U::EVERYONE@:x",
      "A::OWNER@:rwadxtTnNcCoy",
    ]
    let spec = typed.joined(separator: ",").replacing("anna", with: anna.account.name)
    try expect("nfs4_setfacl -s '\(spec)' f")
    #expect(try entries(of: "f") == typed)
    #expect(try shell("getfattr -m - f").output.contains("system.nfs4_acl"))
    try expect("nfs4_setfacl -s A:fdni:$ANNA:rwaD,D:f:EVERYONE@:d,A:dg:GROUP@:x d")
    #expect(try entries(of: "d") == ["A:fdni:anna:rwaD", "D:f:EVERYONE@:d", "A:dg:GROUP@:x"])
    // By a link, it is the file's.
    try expect("ln -s f link && nfs4_setfacl -s A::$ANNA:r link")
    #expect(try entries(of: "f") == ["A::anna:r"])
    #expect(try entries(of: "link") == ["A::anna:r"])
  }

  @Test func entriesAreAddedChangedAndTakenAway() throws {
    try expect("touch f && chmod 600 f")
    try refuse("cat f", as: anna)
    try expect("nfs4_setfacl -a A::$ANNA:r f")
    #expect(try entries(of: "f") == ["A::anna:r", "A::OWNER@:rwatTnNcC", "A:g:GROUP@:tc", "A::EVERYONE@:tc"])
    try expect("cat f", as: anna)
    try refuse("cat f", as: otto, "Permission denied")
    try expect("nfs4_setfacl -a D::$OTTO:x 2 f")
    #expect(try entries(of: "f").prefix(2) == ["A::anna:r", "D::otto:x"])
    try expect("nfs4_setfacl -m A::$ANNA:r A::$OTTO:r f")
    try refuse("cat f", as: anna)
    try expect("cat f", as: otto)
    try expect("nfs4_setfacl -x A::$OTTO:r f && nfs4_setfacl -x 1 f")
    #expect(try entries(of: "f") == ["A::OWNER@:rwatTnNcC", "A:g:GROUP@:tc", "A::EVERYONE@:tc"])
    try refuse("cat f", as: otto)
    try expect(
      "printf '#!/bin/sh\\necho A::%s:r >> \"$1\"\\n' $ANNA > /tmp/$ANNA.sh && chmod +x /tmp/$ANNA.sh")
    try expect("EDITOR=/tmp/$ANNA.sh nfs4_setfacl -e f; rm /tmp/$ANNA.sh")
    #expect(try entries(of: "f").last == "A::anna:r")
    try expect("cat f", as: anna)
  }

  /// Order decides: a denial that comes first wins, one that comes too late does not.
  @Test func orderDecides() throws {
    try expect("echo text > f && chmod 600 f")
    try expect("nfs4_setfacl -s D::$ANNA:r,A::EVERYONE@:r f")
    try refuse("cat f", as: anna, "Permission denied")
    try expect("cat f", as: otto)
    try expect("nfs4_setfacl -s A::EVERYONE@:r,D::$ANNA:r f")
    try expect("cat f", as: anna)
  }

  @Test func newObjectsInherit() throws {
    try expect(
      "mkdir -m 700 d && nfs4_setfacl -s A:fd:$ANNA:rx,A:fi:$OTTO:r d && "
        + "touch d/f && mkdir d/s && touch d/s/f"
    )
    #expect(try entries(of: "d/f") == ["A::anna:rx", "A::otto:r"])
    #expect(try entries(of: "d/s") == ["A:fd:anna:rx"])
    #expect(try entries(of: "d/s/f") == ["A::anna:rx"])
    try expect("chmod 600 d/f d/s/f && chmod 700 d/s")
    try expect("cat d/f d/s/f", as: anna)
    try refuse("cat d/f", as: otto)
  }

  @Test func wholeTreesAreChanged() throws {
    try expect("mkdir -p t/s && touch t/f t/s/f && nfs4_setfacl -R -a A:fd:$ANNA:RX t")
    for directory in ["t", "t/s"] { #expect(try entries(of: directory).first == "A:fd:anna:rxtncy") }
    for file in ["t/f", "t/s/f"] { #expect(try entries(of: file).first == "A::anna:rxtncy") }
  }

  @Test func emptyACLAndNoACLAreDifferent() throws {
    try expect("touch f && chmod 640 f && nfs4_setfacl -s A::$ANNA:r f && nfs4_setfacl -x 1 f")
    #expect(try entries(of: "f") == [])
    #expect(try shell("getfattr -m - f").output.contains("system.nfs4_acl"))
    try expect("setfattr -x system.nfs4_acl f")
    #expect(try entries(of: "f") == ["A::OWNER@:rwatTnNcC", "A:g:GROUP@:rtnc", "A::EVERYONE@:tc"])
    #expect(try shell("getfattr -m - f").output.isEmpty)
  }

  /// What is refused leaves the ACL as it was.
  @Test(
    arguments: [
      ("nfs4_setfacl -s A::no-such-user:r f", "Invalid argument"),
      ("nfs4_setfacl -s A:g:no-such-group:r f", "Invalid argument"),
      ("nfs4_setfacl -s A::$ANNA@elsewhere.example:r f", "Invalid argument"),
      ("nfs4_setfacl -a A::4294967296:r f", "Invalid argument"),
      ("nfs4_setfacl -s U:SF:EVERYONE@:r f", "Operation to set ACL not supported"),
      ("nfs4_setfacl -s A::AUTHENTICATED@:r f", "Operation to set ACL not supported"),
      (
        "nfs4_setfacl -s $(yes A::EVERYONE@:r | head -n 129 | paste -sd ,) f", "Argument list too long"
      ),
      ("setfattr -n system.nfs4_acl -v 0x f", "Invalid argument"),
      ("setfattr -n system.nfs4_acl -v 0x000000 f", "Invalid argument"),
      ("setfattr -n system.nfs4_acl -v 0x00000001 f", "Invalid argument"),
      ("setfattr -n system.nfs4_acl -v 0xffffffff f", "Invalid argument"),
      (
        "setfattr -n system.nfs4_acl -v 0x00000001000000000000000000000001ffffffff4f574e4552400000 f",
        "Invalid argument"
      ),
      (
        "setfattr -n system.nfs4_acl -v 0x00000001000000000000000000000001000000064f574e4552400001 f",
        "Invalid argument"
      ),
      (
        "setfattr -n system.nfs4_acl -v 0x00000001000000040000000000000001000000064f574e4552400000 f",
        "Invalid argument"
      ),
      (
        "setfattr -n system.nfs4_acl -v 0x00000001000000000000000080000000000000064f574e4552400000 f",
        "Invalid argument"
      ),
    ])
  func whatIsRefusedChangesNothing(line: String, words: String) throws {
    try expect("touch f && nfs4_setfacl -s A::$ANNA:r,D::$OTTO:w f")
    let before = try shell("getfattr -n system.nfs4_acl -e hex f").output
    try refuse(line, words)
    #expect(try shell("getfattr -n system.nfs4_acl -e hex f").output == before)
  }

  @Test func fullACLIsTaken() throws {
    try expect("touch f && nfs4_setfacl -s $(yes A::EVERYONE@:r | head -n 128 | paste -sd ,) f")
    #expect(try entries(of: "f").count == 128)
    try refuse("nfs4_setfacl -a A::$ANNA:r f", "Argument list too long")
    #expect(try entries(of: "f").count == 128)
  }

  @Test func strangersChangeNothing() throws {
    try expect("touch f && chmod 666 f && nfs4_setfacl -s A::$ANNA:r f")
    try refuse("nfs4_setfacl -a A::$OTTO:r f", as: otto, "Operation not permitted")
    try refuse("setfattr -x system.nfs4_acl f", as: otto, "Operation not permitted")
    #expect(try entries(of: "f", as: otto) == ["A::anna:r"])
    // The right to change it can be given, and the right to see it taken.
    try expect("nfs4_setfacl -s A::$OTTO:C,D::$ANNA:c f")
    try expect("nfs4_setfacl -a A::$OTTO:r f", as: otto)
    try refuse("getfattr -n system.nfs4_acl f", as: anna)
    try refuse("nfs4_setfacl -a A::EVERYONE@:r ../../../System/Library", "Read-only file system")
  }

  /// A generic right, set in Apple's form: NFSv4 has no word for it, and says so.
  @Test func whatNFS4CanNotSayIsNotShown() throws {
    let everyone = "abcdefabcdefabcdefabcdef0000000c"
    let zeros = String(repeating: "00", count: 32)
    try expect(
      "touch f && setfattr -n system.insula.acl -v "
        + "0x012cc16d\(zeros)0000000100000000\(everyone)0000000101000000 f"
    )
    let shown = try shell("nfs4_getfacl f")
    #expect(shown.output.isEmpty && shown.errors.contains("attribute not supported"), "\(shown)")
    try refuse("nfs4_setfacl -a A::$ANNA:r f", "attribute not supported", ending: .failed)
    try expect("nfs4_setfacl -s A::$ANNA:r f")
    #expect(try entries(of: "f") == ["A::anna:r"])
  }

  @Test(
    arguments: [
      "cp --preserve=xattr f g", "cp -a f g", "rsync -aX f g",
      "mkdir t && tar --xattrs -cf - f | tar --xattrs --xattrs-include='*' -C t -xf - && mv t/f g",
    ])
  func copiesHaveTheACL(line: String) throws {
    guard try shell("command -v \(line.hasPrefix("rsync") ? "rsync" : "tar")").status == 0 else { return }
    try expect("touch f && nfs4_setfacl -s A::$ANNA:rx,D::$OTTO:w f && \(line)")
    #expect(try entries(of: "g") == ["A::anna:rx", "D::otto:w"])
  }
}

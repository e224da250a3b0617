// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// Flags apply to what the daemon does for users.
@Suite(.enabled(if: MountedStore.isPossible)) struct DataFlagsTests {
  private let fixture: AppFixture
  private let container: String
  private var documents: String { container + "/Data/Documents" }

  init() throws {
    fixture = try AppFixture(isMounted: true)
    container = fixture.mounted.path(AppFixture.container)
  }

  private func names(in directory: String) throws -> [String] {
    try fixture.rootShell("ls -A", in: directory).parts(between: "\n").map(String.init)
  }

  /// The attack: a container that root has made immutable is replaced by its user all the same.
  @Test(arguments: ["schg", "sappnd", "uchg"]) func importReplacesNoImmutableContainer(flag: String) throws {
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    let exported = try fixture.nobody("export", "com.example.editor", package)
    try #require(exported.status == 0, "\(exported)")
    try fixture.shell("echo kept >mine", in: documents)
    let before = try names(in: container + "/..")
    try fixture.run("flags", flag, container)
    let refused = try fixture.nobody("import", package, "--replace")
    #expect(refused.status == 7 && refused.errors.contains("it has the flags \(flag);"), "\(refused)")
    #expect(FD.text(of: documents + "/mine", limit: 10) == "kept\n")
    #expect(try names(in: container + "/..") == before)
    #expect(try fixture.run("flags", container).contains(flag))
    try fixture.run("flags", "no" + flag, container)
    let imported = try fixture.nobody("import", package, "--replace")
    #expect(imported.status == 0, "\(imported)")
    #expect(FD.text(of: documents + "/mine", limit: 10) == nil)
  }

  /// The attack: what is in the way of everybody else is not in the way of a delivery.
  @Test(arguments: ["schg", "uchg"]) func nothingIsDeliveredIntoImmutableDirectories(flag: String) throws {
    let letter = try fixture.mounted.temporary.write("one", to: "Letter.txt")
    func deliver() throws -> ProgramResult { try fixture.nobody("deliver", "com.example.editor", letter) }
    #expect(try fixture.nobody("path", "com.example.editor", "home").status == 0)
    try fixture.run("flags", flag, documents)
    let first = try deliver()
    #expect(
      first.status == 1 && first.errors.contains("the directory that it is in has the flags \(flag);"),
      "\(first)")
    #expect(try names(in: documents) == [])
    try fixture.run("flags", "no" + flag, documents)
    #expect(try deliver().status == 0)
    // Nobody gives the Inbox flags through a mount, but it may have got them before it was one.
    let inbox = try TemporaryDirectory.open(
      "\(fixture.store)/tree/\(AppFixture.container)/Data/Documents/Inbox")
    let metadata = Metadata(isSystem: true)
    try metadata.setFlags(flag == "schg" ? .systemImmutable : .userImmutable, on: inbox.fd)
    let second = try deliver()
    #expect(second.status == 1 && second.errors.contains("it has the flags \(flag);"), "\(second)")
    #expect(try names(in: documents + "/Inbox") == ["Letter.txt"])
    // Something may be added to a directory from which nothing may be removed.
    try metadata.setFlags(.systemAppend, on: inbox.fd)
    let third = try deliver()
    #expect(third.status == 0, "\(third)")
    #expect(try names(in: documents + "/Inbox") == ["Letter-2.txt", "Letter.txt"])
    #expect(try names(in: container + "/..").filter { $0 != "com.example.editor" } == [])
  }
}

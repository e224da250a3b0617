// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

// What an app may try that may add photos:
//
// - have files read that are not its own: by `..`, absolute paths, links in any place of the path, pipes and
//   devices, another app's container: `onlyItsOwnFilesAreAdded`
// - put there what is no photo, under a name that it chooses, or in another's place:
//   `whatIsNoPhotoIsRefused`, `nothingIsReplaced`, `nameIsNobodysChoice`
// - find out what is there, by names that collide: `nameIsNobodysChoice`
// - change the file while it is copied, so that something else is added than was looked at:
//   `whatCountsIsTheCopy`
// - learn of the library by how adding fails, and by how much room it takes: `failuresTellNothing`
// - fill the disk: `longFilesAreRefused`, `nothingIsLeftOfHalfAPhoto`
// - have something else than the library written to, by links in its place: `linksInTheHomeAreNotFollowed`

/// How an app's files get into its user's photo library.
@Suite struct PhotoIntakeTests {
  private static let data = "Users/anna/Library/Containers/org.example.camera/Data"
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      atPath: temporary.appending(Self.data + "/tmp"), withIntermediateDirectories: true)
  }

  private static let photo: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + Array(repeating: 7, count: 100_000)

  private func path(_ name: String) -> String { temporary.appending("Users/anna/\(name)") }

  private func write(_ bytes: [UInt8] = photo, to name: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: temporary.appending(name)))
  }

  private func status(_ path: String) throws -> FileStatus {
    let file = try FD.cwd.openFollowing(path, O_RDONLY)
    return try file.fd.status()
  }

  private func writePhoto(_ name: String = "a.jpg") throws { try write(to: "\(Self.data)/\(name)") }

  private func intake(secret: UInt64 = 1) throws -> PhotoIntake {
    PhotoIntake(try TreePlace(temporary.path), secret: secret)
  }

  private func add(
    _ file: String, token: String? = nil, by intake: PhotoIntake? = nil, mayAdd: () -> Bool = { true }
  ) throws -> AgentAnswer {
    try (intake ?? self.intake()).answer(
      AddingTask(AddedPhoto(file, token: token), data: Self.data, home: "anna"), mayAdd: mayAdd)
  }

  /// Whether it is added; says why not.
  private func isAdded(_ file: String, token: String? = nil, by intake: PhotoIntake? = nil) throws -> Bool {
    let answer = try add(file, token: token, by: intake)
    if answer != .added { Issue.record("\(answer)") }
    return answer == .added
  }

  private func errno(_ answer: AgentAnswer) -> Errno? {
    if case .notAdded(let words, let code) = answer, !words.isEmpty { Errno(code) } else { nil }
  }

  /// The regular files below Pictures.
  private func added(_ library: String = PhotoLibrary.usual) -> [String] {
    let files = FileManager.default.enumerator(atPath: path("Pictures/\(library)"))?.compactMap {
      $0 as? String
    }
    return (files ?? []).filter { $0.contains(".") }.sorted()
  }

  @Test func photoIsCopiedIntoTheLibrary() throws {
    try writePhoto()
    let time = Date(timeIntervalSince1970: 1_000_000_000)
    try FileManager.default.setAttributes(
      [.modificationDate: time], ofItemAtPath: temporary.appending("\(Self.data)/a.jpg"))
    #expect(try isAdded("a.jpg"))
    let name = try #require(added().first)
    #expect(name.wholeMatch(of: /originals\/([0-9A-F])\/\1[0-9A-F-]{35}\.jpg/) != nil, "\(name)")
    let copy = path("Pictures/\(PhotoLibrary.usual)/\(name)")
    #expect(FileManager.default.contents(atPath: copy) == Data(Self.photo))
    let status = try status(copy)
    #expect(status.st_mtim.tv_sec == 1_000_000_000 && status.permissions & 0o7111 == 0)
    #expect(try self.status(path("Pictures")).permissions == 0o700)
    // It stays the app's own.
    #expect(access(temporary.appending("\(Self.data)/a.jpg"), F_OK) == 0)
  }

  /// What is not wanted any more when it is copied leaves nothing, and takes nothing from another one.
  @Test func unwantedCopyIsThrownAway() throws {
    try writePhoto()
    try writePhoto("b.jpg")
    var asked = 0
    let answer = try add("a.jpg") {
      #expect(added().allSatisfy { $0.hasSuffix(".jpg") == false })
      asked += 1
      return false
    }
    #expect(errno(answer) == .ECANCELED && asked == 1 && added() == [])
    #expect(try isAdded("b.jpg") && added().count == 1)
    #expect(try isAdded("a.jpg") && added().count == 2)
  }

  /// What is there is where photos go.
  @Test func libraryOfTheUsersIsUsed() throws {
    try writePhoto()
    for name in ["Zoo.photoslibrary", "All.photoslibrary", "Other"] {
      try FileManager.default.createDirectory(
        atPath: path("Pictures/\(name)"), withIntermediateDirectories: true)
    }
    #expect(try isAdded("a.jpg"))
    #expect(added("All.photoslibrary").count == 1 && added().isEmpty && added("Other").isEmpty)
    // The usual one comes first.
    try FileManager.default.createDirectory(
      atPath: path("Pictures/\(PhotoLibrary.usual)"), withIntermediateDirectories: true)
    #expect(try isAdded("a.jpg"))
    #expect(added("All.photoslibrary").count == 1 && added().count == 1)
  }

  @Test func onlyItsOwnFilesAreAdded() throws {
    try writePhoto()
    try write(to: "Users/anna/private.jpg")
    try FileManager.default.createDirectory(
      atPath: temporary.appending("\(Self.data)/../../org.example.other/Data"),
      withIntermediateDirectories: true)
    try write(to: "Users/anna/Library/Containers/org.example.other/Data/b.jpg")
    let inside = temporary.appending(Self.data)
    #expect(symlink(path("private.jpg"), inside + "/link.jpg") == 0)
    #expect(symlink("a.jpg", inside + "/own.jpg") == 0)
    #expect(symlink(path(""), inside + "/home") == 0)
    #expect(symlink(temporary.path, inside + "/all") == 0)
    #expect(mkfifo(inside + "/pipe.jpg", 0o666) == 0)
    for (file, expected) in [
      ("../../../../private.jpg", Errno.EINVAL), (path("private.jpg"), .EINVAL), ("/a.jpg", .EINVAL),
      ("tmp/../a.jpg", .EINVAL), ("./a.jpg", .EINVAL), ("a.jpg/", .EINVAL), ("tmp//a.jpg", .EINVAL),
      ("..", .EINVAL), (".", .EINVAL), ("", .EINVAL), ("tmp", .EINVAL), ("pipe.jpg", .EINVAL),
      ("link.jpg", .EINVAL), ("own.jpg", .EINVAL), ("home/private.jpg", .ENOTDIR), ("all/Users", .ENOTDIR),
      ("../../org.example.other/Data/b.jpg", .EINVAL), ("missing.jpg", .ENOENT), ("a.jpg/b", .ENOTDIR),
      ("a\0.jpg", .EINVAL), (String(repeating: "x", count: 300), .ENAMETOOLONG),
    ] {
      #expect(try errno(add(file)) == expected, "\(file)")
    }
    #expect(added().isEmpty)
  }

  @Test func whatIsNoPhotoIsRefused() throws {
    for (name, text) in [("a.jpg", "#!/bin/sh\n"), ("a.desktop", "[Desktop Entry]\n"), ("empty.jpg", "")] {
      try write(Array(text.utf8), to: "\(Self.data)/\(name)")
      #expect(try errno(add(name)) == .EINVAL, "\(name)")
    }
    #expect(access(path("Pictures"), F_OK) != 0)
  }

  @Test func longFilesAreRefused() throws {
    try writePhoto()
    #expect(truncate(temporary.appending("\(Self.data)/a.jpg"), off_t(PhotoIntake.mostBytes) + 1) == 0)
    #expect(try errno(add("a.jpg")) == .EFBIG)
    // A hole takes no room in the copy either.
    #expect(truncate(temporary.appending("\(Self.data)/a.jpg"), off_t(PhotoIntake.mostBytes)) == 0)
    #expect(try isAdded("a.jpg"))
    let name = try #require(added().first)
    let status = try status(path("Pictures/\(PhotoLibrary.usual)/\(name)"))
    #expect(status.st_blocks < 10_000 && status.st_size == off_t(PhotoIntake.mostBytes))
  }

  /// An app changes its file all the time, and is answered as it likes; what is added is a photo.
  @Test func whatCountsIsTheCopy() throws {
    let file = temporary.appending("\(Self.data)/a.jpg")
    let isOver = Atomic<Bool>(false)
    try writePhoto()
    try withThread {
      guard let app = try? FD.cwd.openFollowing(file, O_RDWR) else { return }
      while !isOver.load(ordering: .relaxed) {
        for bytes in [Array("#!/bin/sh\nexit 0\n".utf8), Array(Self.photo.prefix(17))] {
          _ = bytes.withUnsafeBytes { try? app.fd.write($0, at: 0) }
          _ = ftruncate(app.fd.raw, off_t(1) << 42)
          _ = ftruncate(app.fd.raw, off_t(bytes.count))
        }
      }
    } during: {
      defer { isOver.store(true, ordering: .relaxed) }
      let end = ContinuousClock.now + .seconds(3)
      var answers: [Errno?: Int] = [:]
      while ContinuousClock.now < end { answers[errno(try add("a.jpg")), default: 0] += 1 }
      #expect(Set(answers.keys).isSubset(of: [nil, .EINVAL, .EFBIG, .EBUSY]), "\(answers)")
    }
    for name in added() {
      let copy = try FD.cwd.openFollowing(path("Pictures/\(PhotoLibrary.usual)/\(name)"), O_RDONLY)
      #expect(try copy.fd.status().st_size <= off_t(PhotoIntake.mostBytes))
      #expect(try copy.fd.readToEnd(limit: 3) == [0xff, 0xd8, 0xff], "\(name)")
    }
  }

  private func withThread(
    _ body: @escaping @Sendable () -> Void, during other: () throws -> Void
  ) throws {
    let thread = try JoinableThread(name: "app", body)
    defer { thread.join() }
    try other()
  }

  /// Each row puts something in the library's way.
  @Test(arguments: [
    "echo x >Pictures", "mkdir Pictures; echo x >'Pictures/\(PhotoLibrary.usual)'",
    "mkdir -p 'Pictures/\(PhotoLibrary.usual)'; echo x >'Pictures/\(PhotoLibrary.usual)/originals'",
    """
    mkdir -p 'Pictures/\(PhotoLibrary.usual)/originals'
    cd Pictures/*/originals; touch $(seq 0 9) A B C D E F
    """,
    "ln -s /nowhere Pictures",
  ])
  func failuresTellNothing(script: String) throws {
    try writePhoto()
    try #require(try Program.run(["sh", "-ec", script], in: path("")).status == 0)
    #expect(try add("a.jpg") == .notAdded("the photo library can't be written to", errno: Errno.EIO.code))
  }

  /// Without the usual one the first is taken, however many there are.
  @Test func manyLibrariesAreNoObstacle() throws {
    try writePhoto()
    let script = "mkdir Pictures; cd Pictures; seq -f '%05g.photoslibrary' 1 1500 | xargs mkdir"
    try #require(try Program.run(["sh", "-ec", script], in: path("")).status == 0)
    #expect(try isAdded("a.jpg"))
    #expect(added("00001.photoslibrary").count == 1)
  }

  /// Names have to do with the call, and neither with what the app says nor with what is there.
  @Test func nameIsNobodysChoice() throws {
    try writePhoto()
    try writePhoto("b.jpg")
    #expect(try isAdded("a.jpg", token: "1"))
    // The same call once more.
    #expect(try isAdded("a.jpg", token: "1"))
    #expect(added().count == 1)
    #expect(try isAdded("a.jpg", token: "2"))
    #expect(added().count == 2)
    // Of another run of the app the same token is another call; without one each call is.
    #expect(try isAdded("a.jpg", token: "1", by: intake(secret: 2)))
    #expect(added().count == 3)
    for _ in 0..<2 { #expect(try isAdded("b.jpg")) }
    #expect(added().count == 5)
    #expect(!added().contains { $0.contains("a.jpg") || $0.contains("b.jpg") })
  }

  @Test func nothingIsReplaced() throws {
    try writePhoto()
    #expect(try isAdded("a.jpg", token: "1"))
    let copy = path("Pictures/\(PhotoLibrary.usual)/\(try #require(added().first))")
    try Data("mine".utf8).write(to: URL(fileURLWithPath: copy))
    #expect(try isAdded("a.jpg", token: "1"))
    #expect(FileManager.default.contents(atPath: copy) == Data("mine".utf8))
  }

  @Test(arguments: ["Pictures", "Pictures/\(PhotoLibrary.usual)", "Pictures/\(PhotoLibrary.usual)/originals"])
  func linksInTheHomeAreNotFollowed(place: String) throws {
    try writePhoto()
    let elsewhere = try temporary.makeDirectory("elsewhere")
    try FileManager.default.createDirectory(
      at: URL(fileURLWithPath: path(place)).deletingLastPathComponent(), withIntermediateDirectories: true)
    #expect(symlink(elsewhere, path(place)) == 0)
    // What is there instead is nothing that an app is told.
    #expect(try errno(add("a.jpg")) == .EIO)
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere).isEmpty)
  }

  /// Where the kernel can't name an unnamed file.
  @Test func nothingIsLeftOfHalfAPhoto() throws {
    try writePhoto()
    let directory = try temporary.open()
    let photo = try directory.fd.openDirectory(at: Self.data)
    let made = try temporary.makeDirectory("made")
    let target = try directory.fd.open("made", O_RDONLY | O_DIRECTORY)
    // Of a call that was ended in the middle.
    try write([1], to: "made/.X")
    let file = try photo.fd.open("a.jpg", O_RDONLY)
    let status = try file.fd.status()
    func add() throws(Errno) {
      try PhotoLibrary.addBeside(file.fd, status, named: "X", in: target.fd) { (_) in "jpg" }
    }
    try add()
    #expect(try FileManager.default.contentsOfDirectory(atPath: made) == ["X.jpg"])
    #expect(FileManager.default.contents(atPath: made + "/X.jpg") == Data(Self.photo))
    #expect(throws: Errno.EEXIST) { try add() }
    #expect(try FileManager.default.contentsOfDirectory(atPath: made) == ["X.jpg"])
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Listings that are kept while they are read, and their bounds.
struct KeptListingTests {
  private static let user = Payer(user: 1000)
  private static let other = Payer(user: 1001)

  /// A directory with so many files.
  private final class Directory {
    let temporary: TemporaryDirectory
    let fd: OwnedFD

    init(_ count: Int) throws {
      temporary = try TemporaryDirectory()
      for number in 0..<count { try temporary.write("", to: "file-\(number)") }
      fd = try FD.cwd.openFollowing(temporary.path, O_RDONLY | O_DIRECTORY)
    }
  }

  private func budget(_ bytes: Int) -> Budget {
    var limits = Budget.Limits(descriptors: 64)
    limits[.memory] = bytes
    return Budget(limits)
  }

  private func texts(_ names: KeptListing.Names, from place: Int64 = 0, limit: Int = .max) -> [String] {
    var found: [String] = []
    names.list(from: place) { entry, next in
      #expect(next == place + Int64(found.count) + 1)
      found.append(entry.name.text)
      return found.count < limit
    }
    return found
  }

  /// Each page goes on where the last one ended, wherever that is.
  @Test func offsetsArePlaces() throws {
    // Several blocks.
    let directory = try Directory(4000)
    let listing = KeptListing()
    let budget = budget(1 << 24)
    let names = try #require(try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user))
    let all = texts(names)
    #expect(Set(all) == Set((0..<4000).map { "file-\($0)" } + [".", ".."]) && all.count == 4002)
    #expect(names.count == 4002)
    for place in [0, 1, 1000, 1023, 1365, 2048, 4000, 4001, 4002, 5000, Int64.max, -1] {
      let from = Int(clamping: min(max(place, 0), 4002))
      #expect(texts(names, from: max(place, 0), limit: 50) == Array(all[from...].prefix(50)), "\(place)")
    }
    // What comes and goes meanwhile changes no place.
    try directory.temporary.write("", to: "another")
    let again = try #require(try listing.names(of: directory.fd.fd, from: 7, budget, by: Self.user))
    #expect(texts(again, from: 7) == Array(all[7...]))
    listing.giveBack(to: budget, by: Self.user)
  }

  /// XFS lists a name twice when it comes and goes meanwhile.
  @Test func aNameIsListedOnce() throws {
    let directory = try Directory(20)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 14, alignment: 16)
    defer { room.deallocate() }
    let length = try directory.fd.fd.readDirectory(into: room)
    let more = UnsafeMutableRawBufferPointer(rebasing: room[length...])
    #expect(try directory.fd.fd.readDirectory(into: more) == 0)
    _ = try directory.fd.fd.seek(0, SEEK_SET)
    try directory.temporary.write("", to: "another")
    let second = try directory.fd.fd.readDirectory(into: more)
    func names(_ length: Int) -> [String] {
      var entries = DirectoryEntries(UnsafeRawBufferPointer(rebasing: room[..<length]))
      var found: [String] = []
      while let entry = entries.next() { found.append(entry.name.text) }
      return found
    }
    let twice = names(length + second)
    #expect(twice.count == 45)
    var seen: Set<Int> = []
    let kept = KeptListing.removeKnown(from: room, length + second, &seen)
    let once = names(kept)
    #expect(once.count == 23 && Set(once) == Set(twice))
    // The same for a later chunk.
    #expect(KeptListing.removeKnown(from: room, kept, &seen) == 0)
  }

  /// What is allocated counts, for the user who lists, and comes back.
  @Test func whatIsAllocatedIsCounted() throws {
    let directory = try Directory(3000)
    let budget = budget(1 << 24)
    let (listing, others) = (KeptListing(), KeptListing())
    let names = try #require(try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user))
    _ = try #require(try others.names(of: directory.fd.fd, from: 0, budget, by: Self.other))
    let counted = budget.count(.memory, of: Self.user)
    #expect(counted == names.weight && counted > names.bytes)
    #expect(names.bytes >= 3000 * 32 && budget.count(.memory, of: Self.other) == counted)
    // A listing that begins again takes the place of the one before.
    _ = try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user)
    #expect(budget.count(.memory, of: Self.user) == counted)
    listing.giveBack(to: budget, by: Self.user)
    #expect(budget.count(.memory, of: Self.user) == 0 && budget.count(.memory, of: Self.other) == counted)
    others.giveBack(to: budget, by: Self.other)
    #expect(budget.total(.memory) == 0)
  }

  @Test(arguments: [101, 102, 103])
  func tooManyNamesAreRefused(bound: Int) throws {
    // With its two dots it has 102.
    let directory = try Directory(100)
    let budget = budget(1 << 24)
    let listing = KeptListing(bound: KeptListing.Bound(names: bound, bytes: 1 << 28))
    if bound < 102 {
      #expect(throws: Errno.EOVERFLOW) {
        try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user)
      }
      #expect(budget.total(.memory) == 0)
    } else {
      #expect(try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user)?.count == 102)
    }
  }

  @Test func tooManyBytesAreRefused() throws {
    let directory = try Directory(100)
    let budget = budget(1 << 24)
    let whole = try #require(
      try KeptListing().names(of: directory.fd.fd, from: 0, budget, by: Self.other)?.bytes)
    for (bytes, isRefused) in [(whole - 1, true), (whole, false)] {
      let listing = KeptListing(bound: KeptListing.Bound(names: 1000, bytes: bytes))
      let found = Result { try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user) != nil }
      switch found {
      case .success(let isThere): #expect(isThere && !isRefused)
      case .failure(let error): #expect(isRefused && error as? Errno == .EOVERFLOW)
      }
    }
  }

  /// Without memory for it a listing goes on page by page.
  ///
  /// It is not read again for each, and it ends.
  @Test func listingWithoutMemoryHasTheSameBound() throws {
    let directory = try Directory(100)
    let budget = budget(4096)
    let listing = KeptListing(bound: KeptListing.Bound(names: 102, bytes: 1 << 28))
    #expect(try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user) == nil)
    #expect(budget.total(.memory) == 0)
    listing.listed(102)
    let place = try directory.fd.fd.seek(0, SEEK_CUR)
    #expect(try listing.names(of: directory.fd.fd, from: 9, budget, by: Self.user) == nil)
    #expect(try directory.fd.fd.seek(0, SEEK_CUR) == place)
    listing.listed(1)
    #expect(throws: Errno.EOVERFLOW) {
      try listing.names(of: directory.fd.fd, from: 9, budget, by: Self.user)
    }
    // From its start it begins anew.
    #expect(try listing.names(of: directory.fd.fd, from: 0, budget, by: Self.user) == nil)
    #expect(try listing.names(of: directory.fd.fd, from: 9, budget, by: Self.user) == nil)
  }

  /// A filesystem of somebody's whose listing never ends.
  private final class Endless {
    let temporary: TemporaryDirectory
    var place: String { temporary.appending("mount/de.lproj") }

    init() throws {
      temporary = try TemporaryDirectory()
      try temporary.makeDirectory("below")
      try temporary.makeDirectory("below/de.lproj")
      try temporary.makeDirectory("mount")
      let script = """
        cc -o "$0/lying" "$1" $(pkg-config --cflags --libs fuse3) && "$0/lying" "$0/below" endless "$0/mount"
        """
      let made = try Program.run([
        "sh", "-c", script, temporary.path, Checkout.path("Tests/Fixtures/lying-filesystem.c"),
      ])
      try #require(made.status == 0, "\(made)")
    }

    deinit { umount2(temporary.appending("mount"), Int32(MNT_DETACH)) }
  }

  /// The listing is refused when it is too long, nothing of it is left, and the next one works.
  @Test(.enabled(if: MountedStore.isPossible, "needs root and /dev/fuse"))
  func endlessListingEnds() throws {
    let endless = try Endless()
    let directory = try FD.cwd.openFollowing(endless.place, O_RDONLY | O_DIRECTORY)
    let plain = try Directory(10)
    let listing = KeptListing(bound: KeptListing.Bound(names: 100_000, bytes: 1 << 28))
    let large = budget(1 << 30)
    #expect(throws: Errno.EOVERFLOW) {
      try listing.names(of: directory.fd, from: 0, large, by: Self.user)
    }
    #expect(large.total(.memory) == 0)
    // By its bytes, too.
    let short = KeptListing(bound: KeptListing.Bound(names: 1 << 22, bytes: 1 << 20))
    #expect(throws: Errno.EOVERFLOW) { try short.names(of: directory.fd, from: 0, large, by: Self.user) }
    // Whoever has less memory than that gets it page by page, and no more of it.
    let small = budget(1 << 20)
    #expect(try listing.names(of: directory.fd, from: 0, small, by: Self.user) == nil)
    #expect(small.total(.memory) == 0)
    listing.listed(100_001)
    #expect(throws: Errno.EOVERFLOW) { try listing.names(of: directory.fd, from: 5, small, by: Self.user) }
    let next = KeptListing()
    let names = try #require(try next.names(of: plain.fd.fd, from: 0, large, by: Self.user))
    #expect(names.count == 12)
    next.giveBack(to: large, by: Self.user)
    #expect(large.total(.memory) == 0)
  }
}

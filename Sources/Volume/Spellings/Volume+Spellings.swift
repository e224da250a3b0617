// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// How names are found in a store that ignores case: at the entry of each operation a name becomes the one
// that the directory has. Nothing after that knows of spellings, so no rule can be passed by one.

extension Volume {
  /// A name as a directory of that zone has it, for who holds the directory's names; `user` is the one who is
  /// about to give it to something, if somebody is.
  ///
  /// `changed` is when names in it were last changed, as far as that is known already.
  ///
  /// A name that rules know, and nothing has, is taken in the spelling that they know. A request waits
  /// until a large directory is read.
  func stored(
    _ name: Name, in directory: FD, _ number: ObjectNumber, _ zone: Zone, addingFor user: UInt32?,
    changed: Int64? = nil, for request: RequestID = .none
  ) throws(Errno) -> StoredName {
    guard let spellings else { return StoredName(name) }
    guard let key = NameKey(name.buffer) else {
      // What came past the daemon can at least be removed.
      if user != nil, (try? directory.status(of: name)) == nil { throw .EILSEQ }
      return StoredName(name)
    }
    var answer = SpellingIndex.Answer.unknown
    if let changed {
      answer = spellings.spelling(of: key, in: number, changed: changed)
    }
    if case .unknown = answer {
      let changed = try directory.status().st_mtim.nanoseconds
      answer = spellings.spelling(of: key, in: number, changed: changed)
    }
    var hasRoom = true
    switch answer {
    case .same: return StoredName(name)
    case .other(let spelling): return StoredName(spelling)
    case .free(let isRoomLeft):
      hasRoom = isRoomLeft
      if user != nil, !hasRoom { try takeTurn(for: request, in: directory) }
    case .unknown:
      if (try? directory.status(of: name)) != nil { return StoredName(name) }
      // It is read for this name alone, if its names are too many to be known.
      try takeTurn(for: request, in: directory)
      let (found, weight) = try searchedSpelling(of: key, in: directory)
      if let found { return StoredName(found) }
      hasRoom = weight < spellings.directoryLimit
    }
    if let user, !hasRoom { try requireFewNames(of: user, in: directory) }
    if let standard = zone.standardName(of: key), !name.buffer.elementsEqual(standard) {
      return StoredName(standard, isFree: true)
    }
    return StoredName(name, isFree: true, hasRoom: hasRoom)
  }

  /// To read a large directory takes long, and is for its user's turn.
  private func takeTurn(for request: RequestID, in directory: FD) throws(Errno) {
    guard let spellings, request.number != 0, try directory.status().st_size >= Self.largeDirectory,
      !spellings.takeTurn(of: request)
    else { return }
    spellings.want(request)
    throw .awaitsConsent
  }

  /// That of some thousand names, which take some milliseconds.
  private static var largeDirectory: Int { 256 << 10 }

  /// Reads a directory's names if they are not known, for the one who misses one; nobody need hold them.
  ///
  /// False for a large directory, of which the reading takes its user's turn.
  func learnSpellings(
    in directory: FD, _ number: ObjectNumber, changed: Int64? = nil, for user: UInt32
  ) -> Bool {
    guard let spellings else { return true }
    if let changed, spellings.knows(number, changed: changed) { return true }
    guard let status = try? directory.status(),
      !spellings.knows(number, changed: status.st_mtim.nanoseconds)
    else { return true }
    guard status.st_size < Self.largeDirectory else { return false }
    readSpellings(in: directory, number, for: user)
    return true
  }

  func readSpellings(in directory: FD, _ number: ObjectNumber, for user: UInt32) {
    guard let spellings, let changed = try? directory.status().st_mtim.nanoseconds,
      let reading = spellings.begin(number, changed: changed)
    else { return }
    var names: DirectoryNames? = DirectoryNames(changed: changed, user: user)
    let limit = spellings.directoryLimit
    do throws(Errno) {
      try forEachName(in: directory) { name in
        names?.insert(name.buffer)
        return names.map { $0.weight <= limit } ?? false
      }
      if let read = names, read.weight > limit { names = .tooMany(changed: changed, user: user) }
    } catch {
      names = nil
    }
    spellings.end(reading, of: number, names)
  }

  /// The first spelling of a name in a directory, found by reading that, and about how much all its names
  /// take.
  ///
  /// EOVERFLOW if there are too many.
  func searchedSpelling(
    of name: NameKey, in directory: FD, limit: Int = KeptListing.Bound().names
  ) throws(Errno) -> (found: [UInt8]?, weight: Int) {
    var weight = 0
    var found: [UInt8]?
    try forEachName(in: directory, limit: limit) { other in
      weight += other.length + 25
      if name.isSpelled(other.buffer), found.map({ other.buffer.lexicographicallyPrecedes($0) }) ?? true {
        found = Array(other.buffer)
      }
      return true
    }
    return (found, weight)
  }

  /// Calls `body` for each name, until it says that it has seen enough.
  ///
  /// EOVERFLOW if there are too many: who serves the directory may list names without end, also one again and
  /// again.
  func forEachName(
    in directory: FD, limit: Int = KeptListing.Bound().names, _ body: (Name) -> Bool
  ) throws(Errno) {
    var room = limit
    let listing = try openForListing(directory, sparingTime: true)
    let size = 32 << 10
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try listing.fd.readDirectory(into: buffer)
      guard count > 0 else { return }
      var entries = DirectoryEntries(
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
      while let entry = entries.next() {
        room -= 1
        guard room >= 0 else { throw .EOVERFLOW }
        if entry.name.isComponent, !body(entry.name) { return }
      }
    }
  }

  /// Another spelling of a name, which a directory of the store has; nil if it has none, or too many names
  /// to tell.
  ///
  /// No lock on names is taken: whoever notes what was found asks whether it has been changed since.
  func otherSpelling(of name: [UInt8], in directory: FD, _ number: ObjectNumber) -> [UInt8]? {
    guard let spellings else { return nil }
    readSpellings(in: directory, number, for: 0)
    return name.withUnsafeBufferPointer { name in
      guard let key = NameKey(name), let status = try? directory.status() else { return nil }
      switch spellings.spelling(of: key, in: number, changed: status.st_mtim.nanoseconds) {
      case .other(let spelling): return spelling
      case .unknown where status.st_size < Self.largeDirectory:
        return (try? searchedSpelling(of: key, in: directory))?.found
      default: return nil
      }
    }
  }

  /// A path of the tree as its directories, and the volumes of a user, spell it as far as there are such.
  package func storedPath(_ names: [[UInt8]], for user: UInt32) -> [[UInt8]] {
    spellings == nil ? names : resolvedPath(along: names, for: user).spelled(names)
  }
}

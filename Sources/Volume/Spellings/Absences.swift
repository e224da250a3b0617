// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What kernels were told is missing, and may keep for a moment.
///
///  1. A kernel that keeps that `FOO` is missing would not see that somebody makes `foo`. So each such
///     answer is noted, by whoever looks and holds the names in the directory. Whoever adds a name has them
///     alone, and asks whether another spelling of it is noted; then the kernel looks up all names again.
///  2. A note lasts for as long as a kernel keeps the answer (``validity``), and as the answer may take to
///     arrive.
///  3. There is room for so many, and only a few places for each name. If they are taken, kernels may not
///     keep that one.
///  4. A worker that takes over has none, so it has kernels look up all names again (`KernelMemory.begin`).
struct Absences {
  /// For how many seconds a kernel may keep that a name is missing.
  static let validity = 2.0

  /// In 8 bytes: of the name 32 bits beside those that say where it is noted, of the spelling that was
  /// missing 24 (0 for several), and 8 of the time in seconds.
  private struct Note {
    var name: UInt32
    private var rest: UInt32

    static let none = Note(name: 0, rest: 0)

    private init(name: UInt32, rest: UInt32) {
      self.name = name
      self.rest = rest
    }

    init(_ name: UInt32, spelling: UInt32, at now: UInt32) {
      self.init(name: name, rest: spelling << 8 | now & 0xff)
    }

    var spelling: UInt32 { rest >> 8 }
    var isThere: Bool { name != 0 }

    /// One that is four minutes old may be taken for a new one; that does no harm.
    func lasts(_ now: UInt32) -> Bool { isThere && (now &- rest) & 0xff <= Absences.seconds }
  }

  private static let seconds: UInt32 = 12
  private static let count = 1 << 15
  private static let places = 4
  /// All of them from the first one on.
  private var notes: [Note] = []

  /// Notes that a name is missing; false if there is no room for that.
  mutating func note(_ key: NameKey, in directory: ObjectNumber, at now: UInt32) -> Bool {
    if notes.isEmpty { notes = Array(repeating: .none, count: Self.count) }
    let (name, places) = Self.place(key, directory)
    let spelling = Self.spelling(key)
    var free: Int?
    for place in places {
      let note = notes[place]
      if note.name == name, note.lasts(now) {
        notes[place] = Note(name, spelling: note.spelling == spelling ? spelling : 0, at: now)
        return true
      }
      if free == nil, !note.lasts(now) { free = place }
    }
    guard let free else { return false }
    notes[free] = Note(name, spelling: spelling, at: now)
    return true
  }

  /// A name is there now: whether another spelling of it may be known as missing.
  mutating func end(_ key: NameKey, in directory: ObjectNumber, at now: UInt32) -> Bool {
    guard !notes.isEmpty else { return false }
    let (name, places) = Self.place(key, directory)
    var isOther = false
    for place in places where notes[place].name == name {
      if notes[place].lasts(now), notes[place].spelling != Self.spelling(key) { isOther = true }
      notes[place] = .none
    }
    return isOther
  }

  private static func place(_ key: NameKey, _ directory: ObjectNumber) -> (name: UInt32, places: Range<Int>) {
    let hash = NameHash.hash(key.hash ^ UInt64(directory.device), directory.inode)
    let first = Int(hash & UInt64(count / places - 1)) * places
    return (UInt32(truncatingIfNeeded: hash >> 32) | 1, first..<first + places)
  }

  private static func spelling(_ key: NameKey) -> UInt32 {
    UInt32(truncatingIfNeeded: key.spelling >> 40) | 1
  }
}

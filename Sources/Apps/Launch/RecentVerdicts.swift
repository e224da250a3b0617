// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// What was found out about the apps that were started last, by their bundles' paths.
///
/// Users choose those paths, and how much there is to say of an app. So all that is remembered has a limit,
/// and where that is reached, the owner whose apps take the most loses the one that was used longest ago.
/// What is forgotten is found out again.
struct RecentVerdicts<Verdict> {
  /// The user whose app it is; nil for everyone's.
  typealias Owner = UInt32?
  private struct Entry {
    let verdict: Verdict
    let owner: Owner
    let bytes: Int
    var used: UInt64
  }
  private let mostBytes: Int
  private var entries: [ExactText: Entry] = [:]
  private var bytes: [Owner: Int] = [:]
  private var uses: UInt64 = 0

  /// What each one takes besides the files that it was read from: its path, and what is the same in all.
  static var ownBytes: Int { 4096 }

  init(mostBytes: Int = 4 << 20) { self.mostBytes = mostBytes }

  var count: Int { entries.count }

  /// The verdict on a bundle, which is the last of its owner's to be forgotten then.
  mutating func verdict(at path: String) -> Verdict? {
    uses &+= 1
    let path = ExactText(path)
    entries[path]?.used = uses
    return entries[path]?.verdict
  }

  /// Remembers a verdict that was read from so many bytes; one that takes a quarter of the room is not
  /// remembered.
  mutating func remember(_ verdict: Verdict, at path: String, of owner: Owner, readFrom read: Int) {
    let path = ExactText(path)
    forget(path)
    guard read >= 0, read < mostBytes / 4 - Self.ownBytes else { return }
    let size = read + Self.ownBytes
    while bytes.values.reduce(0, +) > mostBytes - size {
      let heaviest = bytes.max {
        room(of: $0.key, with: size, of: owner) < room(of: $1.key, with: size, of: owner)
      }
      let theirs = entries.filter { $0.value.owner == heaviest?.key }
      guard let oldest = theirs.min(by: { $0.value.used < $1.value.used }) else { return }
      forget(oldest.key)
    }
    uses &+= 1
    entries[path] = Entry(verdict: verdict, owner: owner, bytes: size, used: uses)
    bytes[owner, default: 0] += size
  }

  /// How much room an owner's would take.
  private func room(of owner: Owner, with more: Int, of newcomer: Owner) -> Int {
    (bytes[owner] ?? 0) + (owner == newcomer ? more : 0)
  }

  private mutating func forget(_ path: ExactText) {
    guard let entry = entries.removeValue(forKey: path) else { return }
    let left = (bytes[entry.owner] ?? 0) - entry.bytes
    bytes[entry.owner] = left > 0 ? left : nil
  }
}

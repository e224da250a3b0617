// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension MountTable {
  /// A directory by the filesystem that it is in, which has a place in each mount namespace that knows it.
  package struct Place: Equatable, Sendable {
    package let device: DeviceNumber
    /// From the top of the filesystem.
    package let path: String

    package init(device: DeviceNumber, path: String) { (self.device, self.path) = (device, path) }
  }

  /// Something that is mounted in a directory.
  package struct Found: Equatable, Sendable {
    package let mountPoint: String
    /// A process that sees it there; nil for this process's own namespace.
    package let process: Int32?
  }

  /// Where a path leads that has no links in it.
  package func place(of path: String) -> Place? {
    func has(_ entry: MountEntry) -> Bool {
      entry.mountPoint == "/" || "\(path)/".utf8.starts(with: "\(entry.mountPoint)/".utf8)
    }
    let deepest = entries.filter(has).map(\.mountPoint.utf8.count).max()
    guard let top = entries.last(where: { has($0) && $0.mountPoint.utf8.count == deepest }) else {
      return nil
    }
    let rest = top.mountPoint == "/" ? path : String(path.dropFirst(top.mountPoint.count))
    return Place(device: top.device, path: Self.joined(top.root, rest))
  }

  /// What is mounted on a directory or in it, in this namespace.
  package func mounts(in place: Place) -> [String] {
    var found: [String] = []
    for entry in entries where entry.device == place.device {
      let isInside = "\(entry.root)/".utf8.starts(with: "\(place.path)/".utf8)
      let rest =
        entry.root == "/"
        ? place.path
        : "\(place.path)/".utf8.starts(with: "\(entry.root)/".utf8)
          ? String(place.path.dropFirst(entry.root.count)) : nil
      guard isInside || rest != nil else { continue }
      let directory = isInside ? entry.mountPoint : Self.joined(entry.mountPoint, rest ?? "")
      found += below(directory).map(\.mountPoint)
      if entries.contains(where: { $0.mountPoint == directory && $0.parent == entry.id }) {
        found.append(directory)
      }
    }
    return Set(found).inOrder(by: <)
  }

  private static func joined(_ above: String, _ rest: String) -> String {
    above == "/" ? (rest.isEmpty ? "/" : rest) : above + rest
  }

  /// What is mounted on a directory or in it, in each mount namespace of which this process can see a
  /// process; the namespace of its own comes first.
  ///
  /// A directory that is removed takes the mounts of other namespaces along without a word.
  package static func mountsEverywhere(in path: String) throws(Errno) -> [Found] {
    let own = try current()
    guard let place = own.place(of: path) else { return [] }
    var found = own.mounts(in: place).map { Found(mountPoint: $0, process: nil) }
    var known: Set<[UInt8]> = []
    let ownLink = try? FD.cwd.linkTarget(of: "/proc/self/ns/mnt")
    if let ownLink { known.insert(ownLink) }
    for process in ProcessTable().numbers {
      guard let link = try? FD.cwd.linkTarget(of: "/proc/\(process)/ns/mnt"), known.insert(link).inserted,
        let text = FD.text(of: "/proc/\(process)/mountinfo", limit: 1 << 26)
      else { continue }
      for mountPoint in MountTable(parsing: text).mounts(in: place)
      where !found.contains(where: { $0.mountPoint == mountPoint }) {
        found.append(Found(mountPoint: mountPoint, process: process))
      }
    }
    return found
  }
}

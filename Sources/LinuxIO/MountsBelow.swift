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

  private static func joined(_ above: String, _ rest: String) -> String {
    above == "/" ? (rest.isEmpty ? "/" : rest) : above + rest
  }

  /// What is mounted on a directory or in it, in this process's namespace and in each other one of which it
  /// can see a process.
  ///
  /// A directory that is removed takes the mounts of other namespaces along without a word. `owner` is whose
  /// directory it is.
  ///
  /// Each user can have thousands of namespaces with a hundred thousand mounts each. So those of the machine
  /// are looked at first, and those of one user have a share of the time (``ProcessLook``): whoever makes
  /// theirs larger than that keeps theirs alone from being looked at.
  package static func mountsEverywhere(
    in path: String, of owner: UInt32?
  ) throws(Errno) -> MountsEverywhere {
    guard let place = try current().place(of: path) else { return MountsEverywhere() }
    var found = MountsEverywhere()
    found.binding = try MountLines.read(ofProcess: "self", limit: ownBytes).mounts(in: place).map {
      Found(mountPoint: $0, process: nil)
    }
    found.look(at: MountNamespace.others(), in: place, of: owner, ProcessLook.Limits())
    return found
  }

  private static let ownBytes = 1 << 28
}

/// What is mounted in a directory, by who can have mounted it.
package struct MountsEverywhere: Sendable {
  /// What root has mounted, or whose directory it is: in this namespace, or in others that are theirs.
  package internal(set) var binding: [MountTable.Found] = []
  /// What anybody else has mounted in namespaces of their own: they see it, and nobody else does.
  package internal(set) var others: [MountTable.Found] = []
  /// Processes in whose namespaces something may be mounted too: that could not be found out in time.
  package internal(set) var hidden: [Int32] = []

  private static let maxMounts = 100
  private static let maxBytes = 1 << 24

  mutating func look(
    at namespaces: [MountNamespace], in place: MountTable.Place, of owner: UInt32?,
    _ limits: ProcessLook.Limits
  ) {
    // Those that decide come first.
    func rank(_ namespace: MountNamespace) -> Int {
      if namespace.owner == .machine { return 0 }
      return owner.map { namespace.owner == .user($0) } ?? false ? 1 : 2
    }
    let namespaces = (0...2).flatMap { wanted in namespaces.filter { rank($0) == wanted } }
    let processes = namespaces.compactMap(\.processes.first)
    let byProcess = Dictionary(zip(processes, namespaces)) { first, _ in first }
    let look = ProcessLook(limits, stuck: .ofProgram) { process in
      switch byProcess[process]?.owner {
      case .machine: 0
      case .user(let user): user
      case nil: nil
      }
    }
    let answers = look.answers(about: processes) { process -> [String]? in
      Self.mounts(byProcess[process]?.processes ?? [], in: place)
    }
    var known = Set(binding.map { Array($0.mountPoint.utf8) })
    for namespace in namespaces {
      guard let process = namespace.processes.first else { continue }
      guard let mounts = answers[process] ?? nil else {
        if let alive = namespace.processes.first(where: ProcessID.hasThread) { hidden.append(alive) }
        continue
      }
      // What is mounted for all is in each namespace.
      for mountPoint in mounts where known.insert(Array(mountPoint.utf8)).inserted {
        let found = MountTable.Found(mountPoint: mountPoint, process: process)
        if rank(namespace) < 2 { binding.append(found) } else { others.append(found) }
      }
    }
  }

  /// What is mounted as the first of some processes sees it that can be asked; nil if none can.
  private static func mounts(_ processes: [Int32], in place: MountTable.Place) -> [String]? {
    for process in processes {
      if let lines = try? MountLines.read(ofProcess: "\(process)", limit: maxBytes) {
        return lines.mounts(in: place, limit: maxMounts)
      }
    }
    return nil
  }
}

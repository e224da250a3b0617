// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// One thread of a copy.
final class TreeCopyWorker {
  /// Entries that are given away as one piece of work, and opened at once.
  private static let handful = 8

  private let run: TreeCopyRun
  private let contents = ContentsCopy()
  private let attributes = AttributesCopy()
  private var plan: TreeCopy { run.plan }

  init(_ run: TreeCopyRun) {
    self.run = run
    do throws(Errno) {
      try run.plan.reader?.prepareThread(writing: run.writer != nil)
    } catch {
      run.fail(TreeCopyFailure(path: "", reason: .failed(doing: "read as its owner", error)))
    }
  }

  func work(on work: TreeCopyRun.Work) {
    guard !run.isOver else { return }
    do throws(TreeCopyFailure) {
      switch work {
      case .top: try copyTop()
      case .directory(let name, let parent): try copyDirectory(name, in: parent)
      case .rest(let directory): try list(directory)
      case .entries(let entries, let directory):
        for entry in entries {
          if run.isOver { return }
          try copy(entry.name, entry.type, in: directory)
        }
      }
    } catch {
      run.fail(error)
    }
  }

  // MARK: Directories

  private func copyTop() throws(TreeCopyFailure) {
    let status = try doing("examine", "") { () throws(Errno) in try run.source.status() }
    guard status.isDirectory else { throw Self.failed("copy", "", .ENOTDIR) }
    run.sourceDevice = UInt64(status.st_dev)
    let source = try doing("open", "") { () throws(Errno) in
      try reading { () throws(Errno) in try run.source.reopened(O_RDONLY | O_DIRECTORY) }
    }
    try fill(run.name, source, status, prefix: "", depth: 0, in: run.parent)
  }

  private func copyDirectory(_ name: [UInt8], in parent: CopiedDirectory) throws(TreeCopyFailure) {
    let path = parent.prefix + String(decoding: name, as: UTF8.self)
    guard parent.depth < plan.limits.depth else {
      throw TreeCopyFailure(path: path, reason: .tooDeep(plan.limits.depth))
    }
    let source = try doing("open", path) { () throws(Errno) in
      try name.withName { (name) throws(Errno) in
        try reading { () throws(Errno) in try parent.source.fd.open(name, O_RDONLY | O_DIRECTORY) }
      }
    }
    let status = try doing("examine", path) { () throws(Errno) in try source.fd.status() }
    guard UInt64(status.st_dev) == run.sourceDevice else {
      throw TreeCopyFailure(path: path, reason: .otherFilesystem)
    }
    try fill(name, source, status, prefix: path + "/", depth: parent.depth + 1, in: parent.target.fd)
  }

  /// Makes the copy of a directory, and work of what is in it.
  private func fill(
    _ name: [UInt8], _ source: consuming OwnedFD, _ status: FileStatus, prefix: String, depth: Int,
    in parent: FD
  ) throws(TreeCopyFailure) {
    let path = String(prefix.dropLast())
    let from = source.fd
    let target = try doing("create a copy of", path) { () throws(Errno) in
      try name.withName { (name) throws(Errno) in
        // Only we may put something into the directory that the top comes into.
        let target =
          depth == 0
          ? try make(name, in: parent)
          : try writing { () throws(Errno) in
            try make(name, in: parent)
          }
        try applyOwnerAndMode(target.fd, mode: 0o755)
        try copyAttributes(from: from, to: target.fd)
        return target
      }
    }
    let directory = CopiedDirectory(source, target, status, prefix: prefix, depth: depth, run)
    run.count { $0.directories += 1 }
    try list(directory)
  }

  /// Makes work of some of the names in a directory, and of the rest of it.
  private func list(_ directory: CopiedDirectory) throws(TreeCopyFailure) {
    let path = String(directory.prefix.dropLast())
    let source = directory.source.fd
    let (entries, isEnd) = try doing("list", path) { () throws(Errno) in try source.nextEntries() }
    guard run.announce(entries.count) else {
      throw TreeCopyFailure(path: path, reason: .tooMany(plan.limits.entries))
    }
    let others = entries.filter { $0.type != UInt8(DT_DIR) }
    // Those that are added last are taken first: the files, whose directory is open, and the rest after all
    // that is in the directories.
    if !isEnd { run.stack.add([.rest(of: directory)]) }
    run.stack.add(entries.filter { $0.type == UInt8(DT_DIR) }.map { .directory($0.name, in: directory) })
    run.stack.add(
      stride(from: 0, to: others.count, by: Self.handful).map {
        .entries(others[$0..<min($0 + Self.handful, others.count)], in: directory)
      })
  }

  private func make(_ name: Name, in parent: FD) throws(Errno) -> OwnedFD {
    try parent.makeDirectory(name, mode: 0o700)
    return try parent.open(name, O_RDONLY | O_DIRECTORY)
  }

  private func copy(_ bytes: [UInt8], _ type: UInt8, in directory: CopiedDirectory) throws(TreeCopyFailure) {
    let path = directory.prefix + String(decoding: bytes, as: UTF8.self)
    guard bytes.count <= 255, !bytes.contains(0), !bytes.contains(0x2f) else {
      throw TreeCopyFailure(
        path: path, reason: .badName("it is longer than 255 bytes, or has a special meaning in a path"))
    }
    switch Int32(type) {
    case Int32(DT_REG): try copyFile(bytes, path, in: directory)
    case Int32(DT_LNK): try copyLink(bytes, path, in: directory)
    default:
      // Some filesystems don't say in a listing what an entry is.
      let status = try doing("examine", path) { () throws(Errno) in
        try bytes.withName { (name) throws(Errno) in
          try reading { () throws(Errno) in try directory.source.fd.status(of: name) }
        }
      }
      if status.isRegular {
        try copyFile(bytes, path, in: directory)
      } else if status.isDirectory {
        try copyDirectory(bytes, in: directory)
      } else if status.isSymlink {
        try copyLink(bytes, path, in: directory)
      } else {
        throw TreeCopyFailure(path: path, reason: .special(status))
      }
    }
  }

  // MARK: Files and links

  private func copyFile(_ bytes: [UInt8], _ path: String, in directory: CopiedDirectory)
    throws(TreeCopyFailure)
  {
    // O_NONBLOCK: what was put in its place meanwhile must not stop us.
    let file = try doing("open", path) { () throws(Errno) in
      try bytes.withName { (name) throws(Errno) in
        try reading { () throws(Errno) in
          try directory.source.fd.open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        }
      }
    }
    let status = try doing("examine", path) { () throws(Errno) in try file.fd.status() }
    guard status.isRegular else { throw TreeCopyFailure(path: path, reason: .changed) }
    guard UInt64(status.st_dev) == run.sourceDevice else {
      throw TreeCopyFailure(path: path, reason: .otherFilesystem)
    }
    guard run.announce(bytes: max(0, Int64(status.st_size))) else {
      throw TreeCopyFailure(path: path, reason: .changed)
    }
    let mode: FileMode = status.permissions & 0o100 == 0 ? 0o644 : 0o755
    let copy = try doing("create a copy of", path) { () throws(Errno) in
      try writing { () throws(Errno) in
        try directory.target.fd.open(bytes, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
      }
    }
    var counted: Int64 = 0
    let follower = Int64(status.st_size) < FollowedCopy.smallest ? nil : plan.follower(path)
    let outcome = try doing("copy", path) { () throws(Errno) in
      try writing { () throws(Errno) in
        try contents.copy(from: file.fd, status, to: copy.fd, follower: follower) { copied in
          let more = copied - counted
          counted = copied
          run.count { $0.bytes = $0.bytes.adding(clamped: more) }
          return !run.isOver
        }
      }
    }
    // Whoever said that it is over has said why.
    if run.isOver { return }
    guard outcome != .cutShort else { throw TreeCopyFailure(path: path, reason: .changed) }
    try doing("finish the copy of", path) { () throws(Errno) in
      try copyAttributes(from: file.fd, to: copy.fd)
      try applyOwnerAndMode(copy.fd, mode: mode)
      try copy.fd.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
      if outcome == .followed { follower?.finish(try copy.fd.status()) }
    }
    run.count {
      $0.files += 1
      $0.bytes = $0.bytes.adding(clamped: Int64(status.st_size) - counted)
    }
  }

  private func copyLink(_ bytes: [UInt8], _ path: String, in directory: CopiedDirectory)
    throws(TreeCopyFailure)
  {
    try doing("copy the link", path) { () throws(Errno) in
      try bytes.withName { (name) throws(Errno) in
        let link = try reading { () throws(Errno) in try directory.source.fd.child(name) }
        let status = try link.fd.status()
        let target = try link.fd.linkTarget()
        try writing { () throws(Errno) in try directory.target.fd.makeSymlink(name, to: target) }
        let copy = try directory.target.fd.child(name)
        try copy.fd.changeOwner(uid: plan.uid, gid: plan.gid)
        try copy.fd.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
      }
    }
    run.count { $0.links += 1 }
  }

  /// Gives a copy its owner and mode.
  private func applyOwnerAndMode(_ copy: FD, mode: FileMode) throws(Errno) {
    // Each change is one of the filesystem's journal; most files are made as they are to be.
    let made = try copy.status()
    // The owner first: a change of owner takes bits of the mode away.
    if made.st_uid != plan.uid || made.st_gid != plan.gid {
      try copy.changeOwner(uid: plan.uid, gid: plan.gid)
    }
    if made.permissions != mode { try copy.changeMode(mode) }
  }

  /// Attributes take room as contents do.
  private func copyAttributes(from source: FD, to copy: FD) throws(Errno) {
    try attributes.read(from: source, where: KeptAttributes.contains) { (name, value) throws(Errno) in
      try writing { () throws(Errno) in try copy.setAttribute(name.bytes, to: value, flags: 0) }
    }
  }

  /// Makes or fills something of the copy.
  private func writing<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    guard let writer = run.writer else { return try body() }
    return try writer.write(body)
  }

  /// Opens or looks at something of the source.
  private func reading<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    guard let reader = plan.reader else { return try body() }
    return try reader.read(body)
  }

  // MARK: Failures

  private func doing<Result: ~Copyable>(
    _ words: String, _ path: String, _ body: () throws(Errno) -> Result
  ) throws(TreeCopyFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw Self.failed(words, path, error) }
  }

  private static func failed(_ words: String, _ path: String, _ error: Errno) -> TreeCopyFailure {
    TreeCopyFailure(path: path, reason: .failed(doing: words, error))
  }
}

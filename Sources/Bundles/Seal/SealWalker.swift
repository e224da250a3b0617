// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import Synchronization

/// One thread of a walk.
final class SealWalker {
  /// Files that are given away as one piece of work.
  private static let handful = 8

  private let walk: SealWalk
  private var matcher: RuleMatcher
  private var firstVersion: SealWalk.FirstVersion?
  private let reader: SealReader
  private var items: [SealItem] = []
  private var findings: [Finding] = []

  init(walk: SealWalk, matcher: RuleMatcher, firstVersion: SealWalk.FirstVersion?) {
    self.walk = walk
    reader = SealReader(walk.bundle)
    self.matcher = matcher
    self.firstVersion = firstVersion
  }

  deinit { walk.report(items, findings) }

  func work(on work: SealWalk.Work) {
    if walk.bundle.bounds?.end != nil { return }
    switch work {
    case .directory(let name, let parent):
      let path = (parent?.prefix ?? "") + name
      do throws(Finding) {
        try self.list(open(name, in: parent, path))
      } catch {
        add(error)
      }
    case .rest(let directory):
      do throws(Finding) { try list(directory) } catch { add(error) }
    case .files(let files, let directory):
      for file in files { examine(file, in: directory) }
    }
  }

  private func add(_ finding: Finding) {
    findings.append(finding)
    walk.bundle.bounds?.addFinding()
  }

  // MARK: Directories

  private func open(
    _ name: String, in parent: SealWalk.Directory?, _ path: String
  ) throws(Finding) -> SealWalk.Directory {
    guard let parent else {
      let base = walk.bundle.base
      return SealWalk.Directory(
        try Finding.instead(of: .unreadable, "") { () throws(Errno) in
          try base.reopened(O_RDONLY | O_DIRECTORY)
        },
        prefix: "", depth: 0)
    }
    guard parent.depth < SealWalk.depthLimit, path.utf8.count < SealWalk.pathLimit else {
      throw Finding(.tooDeep, path)
    }
    let opened = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
      try parent.owned.fd.openDirectoryToExamine(name)
    }
    return SealWalk.Directory(opened, prefix: path + "/", depth: parent.depth + 1)
  }

  private func list(_ directory: SealWalk.Directory) throws(Finding) {
    var names = directory.names.withLock { names in
      defer { names = SealWalk.Names() }
      return names
    }
    let known = names.count
    let (entries, isEnd) = try Finding.instead(of: .unreadable, String(directory.prefix.dropLast())) {
      () throws(Errno) in
      let next = try directory.owned.fd.nextEntries()
      guard known + next.entries.count <= SealWalk.entryLimit else { throw .EOVERFLOW }
      return next
    }
    names.count += entries.count
    var directories: [SealWalk.Work] = []
    var files: [SealWalk.WalkFile] = []
    for (bytes, type) in entries {
      guard let name = Self.sealable(bytes) else {
        add(Finding(.badName, directory.prefix + String(decoding: bytes, as: UTF8.self)))
        continue
      }
      let path = directory.prefix + name
      if let control = SealLayout.control(in: name) {
        add(Finding(.badName, path, detail: control))
        continue
      }
      if let other = names.spellings.updateValue(name, forKey: name.folded) {
        add(Finding(.ambiguousNames, path, detail: other))
      }
      do throws(Finding) {
        try sort(name, path, type, in: directory, &directories, &files)
      } catch {
        add(error)
      }
    }
    // Those that are added last are taken first: the files, whose directory is open, and the rest after all
    // that is in the directories.
    if !isEnd {
      directory.names.withLock { $0 = names }
      walk.stack.add([.rest(of: directory)])
    }
    walk.stack.add(directories)
    walk.stack.add(
      stride(from: 0, to: files.count, by: Self.handful).map {
        .files(Array(files[$0..<min($0 + Self.handful, files.count)]), in: directory)
      })
  }

  /// A name that a property list can hold.
  private static func sealable(_ bytes: [UInt8]) -> String? {
    guard bytes.allSatisfy({ $0 >= 0x20 || [0x09, 0x0a, 0x0d].contains($0) }) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Says what is to be done with one name.
  private func sort(
    _ name: String, _ path: String, _ type: UInt8, in directory: SealWalk.Directory,
    _ directories: inout [SealWalk.Work], _ files: inout [SealWalk.WalkFile]
  ) throws(Finding) {
    let type = try type == UInt8(DT_UNKNOWN) ? self.type(of: name, path, in: directory) : type
    guard try !isExcluded(path, type) else { return }
    let rule = try matcher.rule(for: path.utf8).map { walk.rules.rules[$0] }
    var (entry, order): (ResourceSeal.Entry?, Int) = (nil, 0)
    if case .verifying(let seal) = walk.purpose {
      let place = seal.place(of: path)
      // What is not in the seal comes before the entry that has its place.
      if place.isEntry { entry = seal.entries[place.index] }
      order = 2 * place.index + (place.isEntry ? 1 : 0)
    }
    // Where the seal has the same path in memory, it is not kept again.
    let path = entry?.path ?? path
    // What is in the seal is held against it, whatever the rules say.
    let isSealed = entry != nil || rule.map { !$0.isOmitted } ?? false
    if entry == nil { account(for: path, name, isDirectory: Int32(type) == Int32(DT_DIR)) }
    let isOptional = rule?.isOptional ?? false
    switch Int32(type) {
    case Int32(DT_DIR):
      if let rule, rule.isNested, name.utf8.contains(0x2e) {
        items.append(SealItem(path: path, kind: .nested, isOptional: isOptional, order: order))
        if entry == nil { walk.bundle.bounds?.addFinding() }
      } else {
        items.append(SealItem(path: path, kind: .directory, isOptional: isOptional, order: order))
        directories.append(.directory(name, in: directory))
      }
    case Int32(DT_LNK):
      // Nothing says where it leads.
      guard isSealed else { throw Finding(.badSymlink, path, detail: "the rules exclude it") }
      items.append(
        SealItem(
          path: path, kind: .symlink(target: try target(of: name, path, in: directory)),
          isOptional: isOptional, order: order))
      if entry == nil { walk.bundle.bounds?.addFinding() }
    case Int32(DT_REG):
      guard isSealed else { return }
      files.append(try file(name, path, entry, isOptional: isOptional, order))
    default: throw Finding(.specialFile, path)
    }
  }

  private func file(
    _ name: String, _ path: String, _ entry: ResourceSeal.Entry?, isOptional: Bool, _ order: Int
  ) throws(Finding) -> SealWalk.WalkFile {
    guard case .sealing = walk.purpose else {
      var wanted: ResourceSeal.Algorithm?
      if case .file(let algorithm, _)? = entry?.content { wanted = algorithm }
      return SealWalk.WalkFile(
        name: name, path: path, isOptional: isOptional, order: order, wanted: wanted,
        wantsFirstVersion: false)
    }
    let isInFirst = try firstVersion?.covers(path) ?? false
    return SealWalk.WalkFile(
      name: name, path: path, isOptional: isOptional, order: order, wanted: .sha256,
      wantsFirstVersion: isInFirst)
  }

  /// Takes account of what the seal does not list: there may be as much of it as whoever has copied the
  /// bundle likes.
  private func account(for path: String, _ name: String, isDirectory: Bool) {
    guard let bounds = walk.bundle.bounds, case .verifying(let seal) = walk.purpose else { return }
    if isDirectory, seal.hasEntry(in: path) { return }
    bounds.take(Self.smallChange + 2 * name.utf8.count + (isDirectory ? path.utf8.count : 0))
  }

  /// About what it takes to keep a name and an item, without their texts.
  private static let smallChange = 300

  /// What no rule is asked about: the signature, a link to it, the store's receipt, and the main executable.
  private func isExcluded(_ path: String, _ type: UInt8) throws(Finding) -> Bool {
    let isDirectory = Int32(type) == Int32(DT_DIR)
    switch path {
    case SealLayout.signatureDirectory, SealLayout.receiptDirectory: return isDirectory
    case SealLayout.codeResources:
      let expected = SealLayout.codeResourcesPath
      guard Int32(type) == Int32(DT_LNK) else { return false }
      let target = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
        try path.withName { (name) throws(Errno) in try walk.bundle.base.linkTarget(of: name) }
      }
      return target.elementsEqual(expected.utf8)
    default: return path.hasSameBytes(as: walk.bundle.executablePath) && Int32(type) == Int32(DT_REG)
    }
  }

  // MARK: Objects

  private func type(of name: String, _ path: String, in directory: SealWalk.Directory) throws(Finding)
    -> UInt8
  {
    let status = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
      try directory.owned.fd.status(of: name)
    }
    return UInt8(truncatingIfNeeded: status.type >> 12)
  }

  private func target(of name: String, _ path: String, in directory: SealWalk.Directory) throws(Finding)
    -> String
  {
    let target = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
      try name.withName { (name) throws(Errno) in try directory.owned.fd.linkTarget(of: name) }
    }
    guard let text = Self.sealable(target) else {
      throw Finding(.badSymlink, path, detail: "its target can't be sealed")
    }
    return text
  }

  private func examine(_ file: SealWalk.WalkFile, in directory: SealWalk.Directory) {
    let path = file.path
    do throws(Finding) {
      let digests = try reader.digests(
        of: file.name, path, in: directory.owned.fd, file.wanted, firstVersion: file.wantsFirstVersion)
      items.append(
        SealItem(
          path: path, kind: .file(digest: digests.wanted, firstVersion: digests.firstVersion),
          isOptional: file.isOptional, order: file.order))
      // The seal says nothing of it, or that it is no file.
      if file.wanted == nil { walk.bundle.bounds?.addFinding() }
      if reader.hasSideband { add(Finding(.sideband, path)) }
    } catch {
      add(error)
    }
  }
}

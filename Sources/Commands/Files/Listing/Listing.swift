// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// Prints files, and what directories hold.
struct Listing {
  private let options: ListingOptions
  private let context: Context
  private var walk: FileWalk
  private var view: FinderView
  private var hasPrinted = false
  /// Directories that a person does not look into: hidden ones, and packages.
  private var closed: Set<String> = []
  private var found: [ListedFileDescription] = []
  private let now = Glibc.time(nil)

  init(_ options: ListingOptions, _ context: Context) {
    self.options = options
    self.context = context
    walk = FileWalk(context)
    view = FinderView(Languages(environment: context.environment), context)
  }

  var exitCode: ExitCode { walk.exitCode }

  /// Files first, then directories, each with its name in front if there are several.
  mutating func show(_ paths: [String]) {
    // Who wants to know about a link does not want to be led away by it.
    let followsLinks = !(options.isLong || options.showsDirectoriesThemselves || options.showsKind)
    var files: [ListedFile] = []
    var directories: [ListedFile] = []
    for path in paths {
      do {
        let object = try open(path, followingLinks: followsLinks)
        let file = try listed(Array(path.utf8), context.name(of: path), object.fd)
        if file.status.isDirectory && file.shown?.isPackage != true && !options.showsDirectoriesThemselves {
          directories.append(file)
        } else {
          files.append(file)
        }
      } catch {
        walk.report(path, error)
      }
    }
    show(files, in: nil)
    let isNamed = paths.count > 1 || options.isRecursive
    for directory in directories.sorted(by: options.precedes) {
      show(directory: String(decoding: directory.name, as: UTF8.self), followsLinks, isNamed: isNamed)
    }
    if options.json { context.console.print(json: found) }
  }

  private func open(_ path: String, followingLinks: Bool) throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try context.openToName(path, followingLinks: followingLinks)
    } catch {
      // A link that leads nowhere is listed itself.
      guard followingLinks, error == .ENOENT || error == .ELOOP else { throw error }
      return try context.openToName(path, followingLinks: false)
    }
  }

  /// A file, with what a person sees of it where that is wanted.
  private mutating func listed(_ path: [UInt8], _ name: String, _ object: FD) throws(Errno) -> ListedFile {
    var file = try ListedFile(path, object, options, context.aliases)
    if options.isForPerson { file.shown = view.look(at: object, called: Array(name.utf8), file.status) }
    return file
  }

  private mutating func show(directory path: String, _ followsLinks: Bool, isNamed: Bool) {
    var visits = FileWalk(context)
    // The walk lends its objects to a closure, which can't change `self`.
    var listing = self
    visits.visit([path], recursively: options.isRecursive, followingLinks: followsLinks) { object throws in
      guard object.status.isDirectory, listing.isShown(object.path, below: path) else { return }
      try listing.show(object.fd, path: object.path, isNamed: isNamed)
    }
    self = listing
    walk.add(visits)
  }

  /// Not what is below a hidden directory, unless hidden names are wanted, and not what is in a package.
  private func isShown(_ path: String, below start: String) -> Bool {
    let names = path.dropFirst(start.count).parts(between: "/")
    guard options.showsHidden || !names.contains(where: { $0.hasPrefix(".") }) else { return false }
    guard !closed.isEmpty else { return true }
    return !names.contains { closed.contains(String(path[..<$0.endIndex])) }
  }

  private mutating func show(_ directory: FD, path: String, isNamed: Bool) throws {
    let reading = try directory.reopened(O_RDONLY | O_DIRECTORY)
    var names = try reading.fd.entries().map(\.name)
    if !options.showsHidden { names.removeAll { $0.first == UInt8(ascii: ".") } }
    if options.showsSelfAndParent { names += [Array(".".utf8), Array("..".utf8)] }
    var files: [ListedFile] = []
    for name in names {
      do {
        let child = try reading.fd.open(name, pathOnly)
        let file = try listed(name, String(decoding: name, as: UTF8.self), child.fd)
        let isHidden = file.shown?.isHidden == true && !options.showsHidden
        if isHidden || file.shown?.isPackage == true {
          closed.insert("\(path)\(path.ends(with: "/") ? "" : "/")\(String(decoding: name, as: UTF8.self))")
        }
        if !isHidden { files.append(file) }
      } catch {
        walk.report("\(path)/\(String(decoding: name, as: UTF8.self))", error)
      }
    }
    if isNamed && !options.json {
      let title = context.console.shown(Array(path.utf8)) + Array(":\n".utf8)
      context.console.print(exactly: (hasPrinted ? [10] : []) + title)
      hasPrinted = true
    }
    show(files, in: path)
  }

  private mutating func show(_ files: [ListedFile], in directory: String?) {
    let files = files.sorted(by: options.precedes)
    for file in files {
      let name = String(decoding: file.name, as: UTF8.self)
      for problem in file.problems { walk.report(directory.map { "\($0)/\(name)" } ?? name, problem) }
    }
    if options.json {
      return found += files.map { ListedFileDescription($0, in: directory, context.names) }
    }
    var output: [UInt8] = []
    if options.isLong, directory != nil {
      // In blocks of 512 bytes, as stat counts them.
      let blocks = files.reduce(Int64(0)) { $0.adding(clamped: Int64($1.status.st_blocks)) }
      output += Array("total \(blocks)\n".utf8)
    }
    let format = LongFormat(files, options, context.names, now: Int(now))
    let numbers = files.map { String($0.status.st_ino) }
    let width = numbers.map(\.count).max() ?? 0
    for (index, file) in files.enumerated() {
      if options.showsNumber { output += Array((numbers[index].padded(to: width) + " ").utf8) }
      if options.isLong { output += Array(format.columns(of: file).utf8) }
      output += context.console.shown(file.listedName)
      if options.showsKind { output += Array(file.kind.sign.utf8) }
      if options.isLong, let target = file.target {
        output += Array(" -> ".utf8) + context.console.shown(target)
      }
      output.append(10)
      if options.isLong { output += Array(format.below(file).utf8) }
    }
    if !output.isEmpty {
      context.console.print(exactly: output)
      hasPrinted = true
    }
  }
}

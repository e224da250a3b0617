// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// Finds the libraries of a program where the loader would, without running either: see ld.so(8).
struct LibrarySearch {
  /// One that the app is to have in its bundle.
  struct Library: Equatable {
    let name: String
    let path: String
  }

  /// Which libraries come along.
  enum Choice: String {
    /// Those that apps don't find on this machine.
    case own
    /// All but the C library.
    case all
  }

  /// The loader and the C library belong together, and to the machine.
  private static let parts = [
    "ld-linux", "libc.so", "libm.so", "libmvec.so", "libpthread.so", "libdl.so", "librt.so", "libresolv.so",
    "libutil.so", "libanl.so", "libnss_", "libthread_db.so", "libBrokenLocale.so",
  ]
  private static let most = 1000

  private let cache: LoaderCache
  private let choice: Choice
  /// A directory that is copied as a whole, so that what is in it is found in the copy too.
  private let tree: String?

  init(_ choice: Choice, tree: String? = nil) {
    self.choice = choice
    self.tree = tree
    cache = Self.readCache()
  }

  private static func readCache() -> LoaderCache {
    do throws(Errno) {
      let file = try FD.cwd.openFollowing("/etc/ld.so.cache", O_RDONLY)
      return LoaderCache(try file.fd.readToEnd(limit: LoaderCache.sizeLimit))
    } catch {
      // Where there is none, the loader goes by directories, and so do we.
      return LoaderCache()
    }
  }

  /// A file whose libraries are looked for.
  private struct Loader {
    let path: String
    let file: ELFFile
    /// Where those that need it look too (DT_RPATH).
    let inherited: [String]
    /// Whether it lies elsewhere in the bundle than here, so that `$ORIGIN` is another place.
    let isMoved: Bool

    var origin: String { "/" + path.splitAtName.above }

    /// Where it has them looked for; whether by its own place.
    var places: [(directory: String, isByOrigin: Bool)] {
      let all = file.searchPath + (file.isSearchPathItsOwn ? [] : inherited)
      return all.compactMap { place in
        var place = place
        var isByOrigin = false
        for word in ["$ORIGIN", "${ORIGIN}"] where place.hasPrefix(word) {
          place = origin + place.dropFirst(word.count)
          isByOrigin = true
        }
        return place.begins(with: "/") && !place.utf8.contains(UInt8(ascii: "$")) ? (place, isByOrigin) : nil
      }
    }
  }

  /// The libraries that are to come along with a program.
  func libraries(of path: String, _ program: ELFFile) throws(CommandFailure) -> [Library] {
    var found: [Library] = []
    var known: Set<String> = []
    let isInTree = tree.map { path.begins(with: $0 + "/") } ?? false
    var pending = [Loader(path: path, file: program, inherited: [], isMoved: !isInTree)]
    while let loader = pending.popLast() {
      for name in loader.file.libraries where known.insert(name).inserted {
        guard known.count <= Self.most else {
          throw CommandFailure(.failed, "\(path.sanitized) needs more than \(Self.most) libraries")
        }
        guard let (library, file, isVisible) = try find(name, for: loader) else { continue }
        let isPart = Self.parts.contains { name.hasPrefix($0) }
        let isTaken = !isPart && (choice == .all || !isVisible)
        let isKept = tree.map { library.begins(with: $0 + "/") } ?? false
        if isTaken, !isKept { found.append(Library(name: name, path: library)) }
        // What the machine has, finds what it needs there.
        guard isTaken || isKept else { continue }
        let inherited = loader.file.isSearchPathItsOwn ? [] : loader.places.map(\.directory)
        pending.append(Loader(path: library, file: file, inherited: inherited, isMoved: !isKept))
      }
    }
    return found.inOrder { $0.name < $1.name }
  }

  /// Where a library is, and whether an app would find it there.
  private func find(
    _ name: String, for loader: Loader
  ) throws(CommandFailure) -> (path: String, file: ELFFile, isVisible: Bool)? {
    var candidates: [(path: String, isVisible: Bool)] = []
    if name.utf8.contains(UInt8(ascii: "/")) {
      // It is loaded from that path and from nowhere else.
      guard name.begins(with: "/"), Sandbox.shows(name) else {
        throw CommandFailure(
          .failed,
          "\(loader.path.sanitized) loads '\(name.sanitized)', which apps don't see; only a name can be found"
        )
      }
      candidates = [(name, true)]
    } else {
      candidates += loader.places.map { place, isByOrigin in
        ("\(place)/\(name)", !(isByOrigin && loader.isMoved))
      }
      candidates += cache.paths(of: name).map { ($0, true) }
      candidates += Self.standardPlaces.map { ("\($0)/\(name)", true) }
    }
    for (path, isWithinReach) in candidates {
      // Anybody may have chosen that name, and to open a device may do something: files alone are opened.
      guard let found = try? FD.cwd.openFollowing(path, pathOnly),
        let status = try? found.fd.status(), status.isRegular,
        let file = try? found.fd.reopened(O_RDONLY),
        let library = try? ELFFile(file.fd), library.isLinked, library.machine == loader.file.machine,
        let real = realPath(path)
      else { continue }
      return (real, library, isWithinReach && Sandbox.shows(path) && Sandbox.shows(real))
    }
    throw CommandFailure(
      .failed,
      "\(loader.path.sanitized) needs the library '\(name.sanitized)', which is not installed here")
  }

  private static let standardPlaces = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"]
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import PropertyLists

/// An open bundle: a directory of a known shape, with an Info.plist and an executable that can be used.
///
/// Everything in it is reached from its descriptors, name by name; no link is followed, and nothing that is
/// mounted in it is entered. What was read once is kept, so that what is checked is also what is used.
package final class CodeBundle: Sendable {
  /// Where things are.
  package enum Shape: Sendable {
    /// `Name.app/Contents/...`, as on a Mac.
    case contents
    /// `Name.app/...`, as on a phone.
    case flat
  }

  /// How many bundles may be in each other.
  package static let depthLimit = 16

  /// The directory's name, for messages.
  package let name: String
  package let shape: Shape
  package let info: BundleInfo
  /// Info.plist as it lay there when the bundle was opened.
  package let infoPlist: [UInt8]
  /// In how many other bundles it is.
  package let depth: Int
  /// Counts what is read of it.
  package let progress: ReadProgress?
  /// What need not be read of it.
  let known: KnownDigests?
  /// What its verification may take; nil where whoever verifies it does so for themselves.
  let bounds: VerificationBounds?

  private let ownedRoot: OwnedFD
  private let ownedBase: OwnedFD

  /// The bundle's directory, open for reading.
  package var root: FD { ownedRoot.fd }
  /// Where paths in the seal begin: `Contents`, or the bundle's directory itself.
  package var base: FD { ownedBase.fd }

  /// Opens the bundle that a directory, open for reading, is.
  package init(
    in root: consuming OwnedFD, name: String, depth: Int = 0, progress: ReadProgress? = nil,
    known: KnownDigests? = nil, bounds: VerificationBounds? = nil
  ) throws(Finding) {
    self.name = name
    self.depth = depth
    self.progress = progress
    self.known = known
    self.bounds = bounds
    guard depth <= Self.depthLimit else {
      throw Finding(.tooDeep, detail: "too many levels of nested bundles")
    }
    if let contents = try Self.contents(of: root.fd) {
      ownedBase = contents
      shape = .contents
    } else {
      ownedBase = try Finding.instead(of: .unreadable, "") { () throws(Errno) in try root.fd.duplicated() }
      shape = .flat
    }
    ownedRoot = root
    do throws(Finding) {
      let bytes = try Self.file("Info.plist", in: ownedBase.fd, .badInfoPlist, limit: BundleInfo.sizeLimit)
      guard let bytes else {
        throw Finding(.notABundle, detail: "there is no Info.plist")
      }
      infoPlist = bytes
      do throws(Finding) { info = try BundleInfo(reading: bytes) } catch { throw error.inside("Info.plist") }
    } catch {
      throw shape.fromRoot(error)
    }
    if info.executable == nil, name.hasSuffix(".app") { throw Finding(.noExecutable) }
    _ = try openExecutable()
  }

  /// A finding about a path that begins at ``base``, as one about the whole bundle.
  func fromRoot(_ finding: Finding) -> Finding { shape.fromRoot(finding) }

  /// A path that begins at ``base``, as one from the bundle's directory.
  package func fromRoot(_ path: String) -> String { shape == .flat ? path : "Contents/\(path)" }

  /// The directory Contents, if that is the bundle's shape.
  private static func contents(of root: FD) throws(Finding) -> OwnedFD? {
    let contents: OwnedFD
    do throws(Errno) {
      contents = try root.openDirectoryToExamine("Contents")
    } catch {
      if error == .ENOENT { return nil }
      throw Finding(.notABundle, "Contents", error)
    }
    do throws(Errno) {
      _ = try root.status(of: "Info.plist")
    } catch {
      if error == .ENOENT { return contents }
      throw Finding(.unreadable, "Info.plist", error)
    }
    throw Finding(.ambiguousShape)
  }

  /// The shape of the bundle that a directory is.
  package static func shape(of root: FD) throws(Finding) -> Shape {
    try contents(of: root) == nil ? .flat : .contents
  }

  /// Opens the main executable; nil for a bundle that has none.
  package func openExecutable() throws(Finding) -> OwnedFD? {
    guard let name = info.executable else { return nil }
    let path = fromRoot(Finding(.badExecutable, executablePath)).path
    let file = try Finding.instead(of: .badExecutable, path) { () throws(Errno) in
      guard shape == .contents else {
        return try base.openToExamine(name)
      }
      let directory = try base.openDirectoryToExamine("MacOS")
      return try directory.fd.openToExamine(name)
    }
    let status = try Finding.instead(of: .badExecutable, path) { () throws(Errno) in
      try file.fd.status()
    }
    guard status.isRegular else {
      throw Finding(.badExecutable, path, detail: "it is not a regular file")
    }
    return file
  }

  /// The main executable, relative to ``base``; empty for a bundle that has none.
  package var executablePath: String {
    guard let name = info.executable else { return "" }
    return shape == .contents ? "MacOS/\(name)" : name
  }

  /// A part of the signature, such as `CodeResources`; nil if it is not there.
  package func signaturePart(_ name: String) throws(Finding) -> [UInt8]? {
    do throws(Finding) {
      return try Self.signaturePart(name, in: base)
    } catch {
      throw fromRoot(error)
    }
  }

  /// A part of the signature that lies in a directory, which is ``base`` of a bundle; nil if it is not there.
  static func signaturePart(
    _ name: String, in base: FD, sparingTime: Bool = false
  ) throws(Finding) -> [UInt8]? {
    let limit = SealLayout.sizeLimit(of: name)
    guard let directory = try signatureDirectory(in: base) else { return nil }
    do throws(Finding) {
      return try file(name, in: directory.fd, .unreadable, limit: limit, sparingTime: sparingTime)
    } catch {
      throw error.inside(SealLayout.signatureDirectory)
    }
  }

  /// The digest of a part of the signature; nil if it is not there.
  ///
  /// The part is read piece by piece and not kept: as long as nobody has compared its digest, it may be
  /// anything.
  func digest(ofSignaturePart name: String) throws(Finding) -> [UInt8]? {
    let limit = SealLayout.sizeLimit(of: name)
    do throws(Finding) {
      guard let directory = try Self.signatureDirectory(in: base) else { return nil }
      do throws(Finding) {
        guard let file = try Self.open(name, in: directory.fd, .unreadable, limit: limit) else { return nil }
        return try SealedFile(file.fd, name).digest(.sha256, atMost: UInt64(limit))
      } catch {
        throw error.inside(SealLayout.signatureDirectory)
      }
    } catch {
      throw fromRoot(error)
    }
  }

  /// A part of the signature, if it has the digest that was signed; nil otherwise.
  func signaturePart(_ name: String, signedAs digest: [UInt8]) throws(Finding) -> [UInt8]? {
    guard let bytes = try signaturePart(name), try Digest.sha256(of: bytes) == digest else { return nil }
    return bytes
  }

  private static func signatureDirectory(in base: FD) throws(Finding) -> OwnedFD? {
    do throws(Errno) {
      return try base.openDirectoryToExamine(SealLayout.signatureDirectory)
    } catch {
      if error == .ENOENT { return nil }
      throw Finding(.unreadable, SealLayout.signatureDirectory, error)
    }
  }

  /// A file that is read as a whole, if it is there and has at most `limit` bytes.
  static func file(
    _ name: String, in directory: FD, _ kind: Finding.Kind, limit: Int, sparingTime: Bool = false
  ) throws(Finding) -> [UInt8]? {
    guard let file = try open(name, in: directory, kind, limit: limit, sparingTime: sparingTime) else {
      return nil
    }
    do throws(Errno) {
      return try file.fd.contentsIfRegular(limit: limit)
    } catch {
      throw Finding(kind, name, error)
    }
  }

  /// A regular file of at most `limit` bytes, open for reading; nil if it is not there.
  private static func open(
    _ name: String, in directory: FD, _ kind: Finding.Kind, limit: Int, sparingTime: Bool = false
  ) throws(Finding) -> OwnedFD? {
    do throws(Errno) {
      let file = try directory.openToExamine(name, sparingTime: sparingTime)
      let status = try file.fd.status()
      guard status.isRegular else { throw .EINVAL }
      guard status.st_size <= limit else { throw .EFBIG }
      return file
    } catch {
      if error == .ENOENT { return nil }
      throw Finding(kind, name, error)
    }
  }
}

extension CodeBundle.Shape {
  fileprivate func fromRoot(_ finding: Finding) -> Finding {
    self == .flat || finding.path.isEmpty ? finding : finding.inside("Contents")
  }
}

extension Finding {
  /// A call that failed; the errors that have a meaning of their own here are named.
  init(_ kind: Kind, _ path: String, _ error: Errno) {
    let detail =
      switch error {
      case .ELOOP: "it is a symbolic link"
      case .EXDEV: "a filesystem is mounted there"
      case .ENOTDIR: "it is not a directory"
      case .EINVAL: "it is not a regular file"
      default: error.message
      }
    self.init(kind, path, detail: detail)
  }

  /// Calls `body`; where that fails, this is the finding.
  static func instead<Result: ~Copyable>(
    of kind: Kind, _ path: String, _ body: () throws(Errno) -> Result
  ) throws(Finding) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw Finding(kind, path, error)
    }
  }
}

/// Where a signature lies in a bundle.
package enum SealLayout {
  /// In ``CodeBundle/base``, as the receipt is.
  package static let signatureDirectory = "_CodeSignature"
  package static let receiptDirectory = "_MASReceipt"
  package static let codeResources = "CodeResources"
  package static let codeDirectory = "CodeDirectory"
  package static let codeSignature = "CodeSignature"
  package static let codeRequirements = "CodeRequirements"
  package static let codeEntitlements = "CodeEntitlements"
  /// What may lie beside `Contents`: files of the Finder's, and of the store's.
  package static let rootFiles = [".DS_Store", ".LSOverride", "Icon\r", ".SoftwareDepot.tracking"]
  package static let codeResourcesPath = "\(signatureDirectory)/\(codeResources)"
  /// The largest size of a part.
  ///
  /// The code directory is read before anybody knows who has signed it, and grows with the executable.
  static func sizeLimit(of part: String) -> Int {
    switch part {
    case codeDirectory: CodeDirectory.maximumSize
    case codeResources: PropertyList.sizeLimit
    default: 1 << 20
    }
  }
  /// All that may be in it.
  package static let parts = [
    codeResources, codeDirectory, codeSignature, codeRequirements, codeEntitlements,
  ]
}

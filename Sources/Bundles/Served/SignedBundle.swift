// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists

/// The signature of a bundle that is served, as it lies there: what it consists of, and what it says of other
/// files.
struct SignedBundle {
  /// In front of all sealed paths: `Contents/` or nothing.
  let prefix: String
  /// The bytes of each part that is there.
  private let parts: [(name: String, bytes: [UInt8])]
  private let directory: CodeDirectory
  /// Relative to the prefix; nil where Info.plist is not what was signed, so that nobody knows.
  private let executable: String?
  /// Whether it is of a phone's shape, or says that it is for phones.
  private let isForPhones: Bool

  /// `CodeResources`.
  let resources: [UInt8]

  /// Finds the signature in one of the two places where it can be: a directory that someone has added is no
  /// reason to take one shape for the other.
  static func find(in root: FD, _ installed: InstalledDigest) throws(Finding) -> SignedBundle {
    let contents = try? root.openDirectoryToExamine("Contents")
    guard let contents else { return try SignedBundle(in: root, prefix: "", installed) }
    do throws(Finding) {
      return try SignedBundle(in: contents.fd, prefix: "Contents/", installed)
    } catch {
      if let flat = try? SignedBundle(in: root, prefix: "", installed) { return flat }
      throw error
    }
  }

  private init(in base: FD, prefix: String, _ installed: InstalledDigest) throws(Finding) {
    self.prefix = prefix
    var parts: [(name: String, bytes: [UInt8])] = []
    for name in SealLayout.parts {
      if let bytes = try CodeBundle.signaturePart(name, in: base, sparingTime: true) {
        parts.append((name, bytes))
      }
    }
    self.parts = parts
    func part(_ name: String) -> [UInt8]? { parts.first { $0.name == name }?.bytes }

    guard let content = part(SealLayout.codeDirectory) else { throw Finding(.unsigned) }
    do throws(MalformedCodeDirectory) {
      directory = try CodeDirectory(content)
    } catch {
      throw Finding(.malformedCodeDirectory, detail: error.reason)
    }
    switch installed {
    case .digests(let known):
      guard known.contains(try CodeBundle.sealDigest(part)) else { throw Finding(.signatureMismatch) }
    case .nested(let seal):
      guard try Finding.cdhash(of: content) == seal.cdhash else { throw Finding(.nestedRejected) }
      guard let signature = part(SealLayout.codeSignature), part(SealLayout.codeRequirements) == nil else {
        throw Finding(.nestedUnsigned)
      }
      // Whose it is was asked when the app was installed, and the cdhash says that nothing else has changed
      // since.
      try Trust.check(signature, of: content)
    }
    guard let resources = part(SealLayout.codeResources) else { throw Finding(.noCodeResources) }
    guard try Digest.sha256(of: resources) == directory.digests[.resources] else {
      throw Finding(.codeResourcesAltered)
    }
    self.resources = resources
    if let entitlements = part(SealLayout.codeEntitlements) {
      guard try Digest.sha256(of: entitlements) == directory.digests[.entitlements] else {
        throw Finding(.entitlementsAltered)
      }
    } else if directory.digests[.entitlements] != nil {
      throw Finding(.entitlementsAltered)
    }
    let info = Self.info(in: base, directory)
    executable = info?.executable.map { prefix.isEmpty ? $0 : "MacOS/\($0)" }
    isForPhones = prefix.isEmpty || info?.list["LSRequiresIPhoneOS"]?.boolean == true
  }

  /// The Info.plist, if it is the one that was signed.
  private static func info(in base: FD, _ directory: CodeDirectory) -> BundleInfo? {
    guard
      let bytes = try? CodeBundle.file(
        "Info.plist", in: base, .badInfoPlist, limit: BundleInfo.sizeLimit, sparingTime: true),
      let digest = try? Digest.sha256(of: bytes), digest == directory.digests[.infoPlist]
    else { return nil }
    return try? BundleInfo(reading: bytes)
  }

  /// Whether the signature itself says what a path must be.
  func knows(_ path: String) -> Bool {
    path.hasSameBytes(as: "Info.plist") || executable.map { $0.hasSameBytes(as: path) } ?? false
      || path.utf8.starts(with: (SealLayout.signatureDirectory + "/").utf8)
  }

  /// Whether the signature has the entitlement of sandboxed apps; also if nobody can tell.
  ///
  /// An app for phones always is, whatever its entitlements say, as the system sees to it there.
  var isSandboxed: Bool {
    if isForPhones { return true }
    guard let bytes = parts.first(where: { $0.name == SealLayout.codeEntitlements })?.bytes else {
      return false
    }
    guard let entitlements = try? CodeBundle.entitlements(bytes) else { return true }
    guard let value = entitlements["com.apple.security.app-sandbox"] else { return false }
    return value != .boolean(false)
  }

  /// Adds what the signature says.
  ///
  /// `hasResourcesEntry` says that its list has something to say of the link that old tools leave beside it.
  func add(to builder: inout SealedTree.Builder, hasResourcesEntry: Bool) throws(Finding) {
    func file(_ path: String, _ digest: [UInt8]) throws(Finding) {
      let algorithm = UInt8(truncatingIfNeeded: ResourceSeal.Algorithm.sha256.rawValue)
      try builder.add(prefix + path, .file, isOptional: false, payload: [algorithm] + digest)
    }
    for part in parts {
      try file("\(SealLayout.signatureDirectory)/\(part.name)", Digest.sha256(of: part.bytes))
    }
    if let digest = directory.digests[.infoPlist] { try file("Info.plist", digest) }
    if let executable {
      let pages = try Digest.sha256(of: directory.pageDigests)
      try builder.add(
        prefix + executable, .executable, isOptional: false,
        payload: SealedFile.payload(size: directory.executableSize, pages: pages))
    }
    let isExecutable = executable.map { $0.hasSameBytes(as: SealLayout.codeResources) } ?? false
    if !hasResourcesEntry, !isExecutable {
      try builder.add(
        prefix + SealLayout.codeResources, .symlink, isOptional: true,
        payload: SealLayout.codeResourcesPath.utf8)
    }
  }
}

extension Trust {
  /// Throws unless these bytes, all of them, are a signature of `content` by the certificate that they bring
  /// along.
  ///
  /// Whether that is trusted is not asked.
  static func check(_ signature: [UInt8], of content: [UInt8]) throws(Finding) {
    guard signature.count <= maximumSignatureSize else {
      throw Finding(.malformedSignature, detail: "it is too long")
    }
    let shape = try SignedMessageShape(signature)
    let isGood: Bool
    do throws(CryptoFailure) {
      let message = try SignedMessage.reading(signature)
      let isWhole = try message.encoded() == signature
      let isSignature = try message.isSignature(of: content)
      let signer = try message.signer()?.issuerAndSerial()
      isGood = isWhole && isSignature && signer.map { $0.elementsEqual(shape.signer) } ?? false
    } catch {
      throw Finding(.malformedSignature, detail: error.description)
    }
    guard isGood else { throw Finding(.signatureMismatch) }
  }
}

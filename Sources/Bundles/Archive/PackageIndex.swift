// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

/// What the signed index of a directory of packed apps promises: which versions of which apps are in which
/// files, and that there were no others when it was made.
///
/// It vouches for nothing that is in the files: each app has its own signature.
package struct PackageIndex: Equatable, Sendable {
  /// One app.
  package struct App: Equatable, Sendable {
    package let identifier: String
    /// `CFBundleVersion`.
    package let version: String
    /// `CFBundleShortVersionString`; empty if there is none.
    package let shortVersion: String
    /// The file's name, in the directory of the index.
    package let file: String
    package let size: Int64
    /// SHA-256 of the file.
    package let digest: [UInt8]

    package init(
      identifier: String, version: String, shortVersion: String, file: String, size: Int64, digest: [UInt8]
    ) {
      self.identifier = identifier
      self.version = version
      self.shortVersion = shortVersion
      self.file = file
      self.size = size
      self.digest = digest
    }
  }

  package static let fileName = "index.plist"
  package static let sizeLimit = 8 << 20
  package static let appLimit = 10_000
  /// The largest file that an index may name.
  package static let fileSizeLimit: Int64 = 1 << 36

  /// When it was made, in seconds since 1970.
  package let issued: Int64
  package let apps: [App]

  package init(issued: Int64, apps: [App]) {
    self.issued = issued
    self.apps = apps
  }

  /// Whether a file of that name may be in an index: it is used in paths and addresses.
  package static func isAllowed(file name: String) -> Bool {
    (1...255).contains(name.utf8.count) && !name.hasPrefix(".") && name != fileName
      && name.unicodeScalars.allSatisfy {
        !$0.isControl && $0 != "/" && $0 != "\u{fffd}"
      }
  }
}

/// Why something is no index that counts.
package enum PackageIndexFailure: Error, Sendable, CustomStringConvertible {
  case malformed(String)
  case otherFormat(Int64)
  case badFileName(String)
  case twice(String)
  case tooManyApps
  case signature(Finding)
  case crypto(CryptoFailure)

  package var description: String {
    switch self {
    case .malformed(let reason): "it is damaged or no index: \(reason)"
    case .otherFormat(let format): "it has format \(format), and this version of insula knows only 1"
    case .badFileName(let name): "it names a file that can't be in its directory: '\(name)'"
    case .twice(let identifier): "it has \(identifier) twice"
    case .tooManyApps: "it has more than \(PackageIndex.appLimit) apps"
    case .signature(let finding): finding.message
    case .crypto(let failure): failure.description
    }
  }
}

extension PackageIndex {
  private static let format: Int64 = 1
  private static let signatureKey = "Signature"
  /// From 1970 to 2001, where the dates of property lists begin.
  private static let start: Int64 = 978_307_200
  /// What is signed begins with this, so that it is never taken for anything else that is signed.
  private static let label = Array("insula package index\n".utf8)

  // MARK: Writing

  /// The signed index as it is in a file.
  package func signed(by identity: borrowing Identity) throws(PackageIndexFailure) -> [UInt8] {
    var list = list
    let content = try Self.content(list)
    do throws(CryptoFailure) {
      list[Self.signatureKey] = .data(try identity.signature(of: content))
    } catch {
      throw .crypto(error)
    }
    return try Self.text(.dictionary(list))
  }

  private var list: PropertyList.Dictionary {
    var list = PropertyList.Dictionary()
    list["Format"] = .integer(Self.format)
    list["Issued"] = .date(Double(issued - Self.start))
    list["Apps"] = .array(
      apps.map { app in
        PropertyList(entries: [
          ("CFBundleIdentifier", .string(app.identifier)), ("CFBundleVersion", .string(app.version)),
          ("CFBundleShortVersionString", .string(app.shortVersion)), ("File", .string(app.file)),
          ("Size", .integer(app.size)), ("SHA256", .data(app.digest)),
        ])
      })
    return list
  }

  private static func content(_ unsigned: PropertyList.Dictionary) throws(PackageIndexFailure) -> [UInt8] {
    label + (try text(.dictionary(unsigned)))
  }

  private static func text(_ list: PropertyList) throws(PackageIndexFailure) -> [UInt8] {
    do throws(PropertyListError) { return try list.xml() } catch { throw .malformed(error.description) }
  }

  // MARK: Reading

  /// Reads an index, and finds out who has signed it; `time` is now, in seconds since 1970.
  package static func read(
    _ bytes: [UInt8], trust: Trust, at time: Int64
  ) throws(PackageIndexFailure) -> (index: PackageIndex, signer: Signer) {
    var list = try dictionary(bytes)
    guard let signature = list[signatureKey]?.data else { throw .signature(Finding(.unsigned)) }
    list[signatureKey] = nil
    let content = try content(list)
    let signer: Signer
    do throws(Finding) {
      signer = try trust.signer(of: content, by: signature, at: time)
    } catch {
      throw .signature(error)
    }
    return (try PackageIndex(list), signer)
  }

  /// When an index says to have been made, whoever signed it; nil for what is none.
  package static func issueDate(of bytes: [UInt8]) -> Int64? {
    guard let list = try? dictionary(bytes) else { return nil }
    return try? PackageIndex(list).issued
  }

  private static func dictionary(_ bytes: [UInt8]) throws(PackageIndexFailure) -> PropertyList.Dictionary {
    guard bytes.count <= sizeLimit else { throw .malformed("it is too long") }
    let list: PropertyList
    do throws(PropertyListError) { list = try PropertyList(reading: bytes) } catch {
      throw .malformed(error.description)
    }
    // There is one spelling of it, so that what is signed is also what is used.
    guard let dictionary = list.dictionary, try text(list) == bytes else {
      throw .malformed("it is not written as 'insula index' writes it")
    }
    return dictionary
  }

  private init(_ list: PropertyList.Dictionary) throws(PackageIndexFailure) {
    guard let format = list["Format"]?.integer else { throw .malformed("it has no format") }
    guard format == Self.format else { throw .otherFormat(format) }
    guard case .date(let seconds)? = list["Issued"], let date = Int64(exactly: seconds.rounded(.down)) else {
      throw .malformed("it has no date")
    }
    guard let values = list["Apps"]?.array else { throw .malformed("it has no list of apps") }
    guard values.count <= Self.appLimit else { throw .tooManyApps }
    var apps: [App] = []
    var seen: Set<String> = []
    for value in values {
      let app = try App(value)
      guard seen.insert(app.identifier.lowercased()).inserted else { throw .twice(app.identifier) }
      apps.append(app)
    }
    self.init(issued: date + Self.start, apps: apps)
  }
}

extension PackageIndex.App {
  fileprivate init(_ value: PropertyList) throws(PackageIndexFailure) {
    guard let entry = value.dictionary, let identifier = entry["CFBundleIdentifier"]?.string,
      !identifier.isEmpty, let version = entry["CFBundleVersion"]?.string,
      let shortVersion = entry["CFBundleShortVersionString"]?.string, let file = entry["File"]?.string,
      let size = entry["Size"]?.integer, let digest = entry["SHA256"]?.data
    else { throw .malformed("an app lacks something") }
    guard PackageIndex.isAllowed(file: file) else { throw .badFileName(file) }
    guard (1...PackageIndex.fileSizeLimit).contains(size), digest.count == 32 else {
      throw .malformed("the size or digest of '\(file)' can't be right")
    }
    self.init(
      identifier: identifier, version: version, shortVersion: shortVersion, file: file, size: size,
      digest: digest)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Where the symbolic links of a bundle lead, by what a walk has found: no link is followed to find out.
struct LinkCheck {
  /// How many links one link may lead through.
  private static let limit = 40
  /// How many bytes of paths all links may lead through together: less than a second's work.
  ///
  /// Bundles have some thousands of links at most, which lead through a few short names each.
  private static let maxBytes = 256 << 20

  private let bounds: VerificationBounds?
  private let shape: CodeBundle.Shape
  /// Paths have the storage that they have in the items: copies would be as long as all of them together.
  private var kinds: [ExactText: SealItem.Kind] = [:]
  private let links: [SealItem]

  /// Takes what was found, and what is sealed by other means.
  init(_ items: [SealItem], _ bundle: CodeBundle) {
    shape = bundle.shape
    bounds = bundle.bounds
    links = items.filter { if case .symlink = $0.kind { true } else { false } }
    guard !links.isEmpty else { return }
    kinds.reserveCapacity(items.count + 2)
    for item in items { kinds[ExactText(item.path)] = item.kind }
    for path in ["Info.plist", bundle.executablePath] where !path.isEmpty {
      kinds[ExactText(path)] = .file(digest: [], firstVersion: nil)
    }
  }

  /// The links that lead out of the bundle, to something that is not sealed, or nowhere.
  ///
  /// Optional files may be missing, so a link to one in `optional` may lead nowhere.
  func findings(optional: Set<ExactText> = []) -> [Finding] {
    var findings: [Finding] = []
    var bytesLeft = Self.maxBytes
    for link in links {
      // Nobody waits for it any more, or enough was found.
      if bounds?.end != nil { break }
      guard case .symlink(let target) = link.kind,
        let refusal = refusal(link.path, target, optional, &bytesLeft)
      else { continue }
      findings.append(Finding(.badSymlink, link.path, detail: refusal))
      bounds?.addFinding()
      if bytesLeft < 0 { break }
    }
    return findings
  }

  private func refusal(
    _ path: String, _ target: String, _ optional: Set<ExactText>, _ bytesLeft: inout Int
  ) -> String? {
    // Names from the bundle's own directory on.
    var place = (shape == .contents ? ["Contents"[...]] : []) + path.parts(between: "/").dropLast()
    var pending: [Substring] = []
    var linksLeft = Self.limit
    if let answer = follow(target, &pending) { return answer.reason }
    while let name = pending.popLast() {
      if name == "." { continue }
      if name == ".." {
        guard !place.isEmpty else { return "it leads out of the bundle" }
        place.removeLast()
        continue
      }
      place.append(name)
      bytesLeft -= place.reduce(0) { $0 + $1.utf8.count + 1 }
      if bytesLeft < 0 { return "the bundle's links lead through too many names" }
      switch kind(at: place) {
      case .directory?: continue
      case .file?:
        return pending.isEmpty ? nil : "it leads through a file"
      case .nested?:
        // What is in there is sealed by its own signature, and its links are its own.
        return pending.contains("..") ? "it leads through another bundle" : nil
      case .symlink(let next)?:
        guard linksLeft > 0 else { return "it leads in a circle" }
        linksLeft -= 1
        place.removeLast()
        if let answer = follow(next, &pending) { return answer.reason }
      case nil:
        if pending.isEmpty, optional.contains(ExactText(sealedPath(place))) { return nil }
        return "it leads to '\(place.joined(separator: "/"))', which is not sealed or does not exist"
      }
    }
    // A directory, and what is in it is sealed unless it is the one with Contents in it.
    return shape == .contents && place.isEmpty ? "it leads to the bundle itself" : nil
  }

  /// Puts the names of a target before those that are pending; the answer of one that leaves the bundle.
  private func follow(_ target: String, _ pending: inout [Substring]) -> (reason: String?, Void)? {
    let names = target.parts(between: "/")
    guard target.begins(with: "/") else {
      pending += names.reversed()
      return nil
    }
    let isSystems = ["System", "Library"].contains(names.first ?? "") && names.count > 1
    let isAllowed = isSystems && !names.contains("..") && !names.contains(".")
    return (isAllowed ? nil : "it leads to an absolute path outside /System and /Library", ())
  }

  /// What lies at a place; nil for what is not sealed.
  private func kind(at place: [Substring]) -> SealItem.Kind? {
    if shape == .contents, place == ["Contents"] { return .directory }
    guard shape == .flat || place.first == "Contents" else { return nil }
    return kinds[ExactText(sealedPath(place))]
  }

  private func sealedPath(_ place: [Substring]) -> String {
    (shape == .contents ? place.dropFirst() : place[...]).joined(separator: "/")
  }
}

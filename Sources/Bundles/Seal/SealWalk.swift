// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// One object that a walk through a bundle came by.
struct SealItem: Equatable, Sendable {
  enum Kind: Equatable, Sendable {
    /// Not sealed itself, but links may lead to it.
    case directory
    case file(digest: [UInt8], firstVersion: [UInt8]?)
    case symlink(target: String)
    case nested
  }

  /// Relative to ``CodeBundle/base``.
  let path: String
  let kind: Kind
  /// Whether the rules let it be missing.
  let isOptional: Bool
  /// Where it is among the entries of a seal, so that texts are not compared to sort it.
  ///
  /// Those between two entries have the same.
  var order = 0
}

/// What is to be known of the files that a walk comes by.
enum SealPurpose: Sendable {
  /// Both digests, and that of the first version where its rules say so.
  case sealing(firstVersion: SealRules)
  /// The digest that the seal has, and none of what it does not list.
  case verifying(ResourceSeal)
}

/// A walk through the files of a bundle that its seal should cover, by several threads.
///
/// A thread takes a directory, reads its names, and makes new work of the directories and of its files in
/// handfuls. Of a large directory it reads some names; the rest waits until all is done that they have led
/// to, so that few names are in memory at once. Directories are opened from their parents' descriptors when
/// they are walked, so the open ones are those on the way to what waits.
final class SealWalk: Sendable {
  /// How deep directories may be in each other; each level on the way is an open descriptor.
  static let depthLimit = 100
  /// How many names may be in one directory: a copy of a bundle has no more in all.
  static let entryLimit = 1_000_000
  /// How long a path may be in bytes.
  static let pathLimit = 4000

  let bundle: CodeBundle
  let rules: SealRules
  let purpose: SealPurpose
  let stack: WorkStack<Work>
  private let results = SharedResults()

  /// An open directory that work waits for.
  final class Directory: Sendable {
    let owned: OwnedFD
    /// Relative to the base; ends in a slash unless it is the base.
    let prefix: String
    let depth: Int
    /// Those that were read; whoever lists the directory has them meanwhile.
    let names = Mutex(Names())

    init(_ owned: consuming OwnedFD, prefix: String, depth: Int) {
      self.owned = owned
      self.prefix = prefix
      self.depth = depth
    }
  }

  /// Names that were read in one directory.
  struct Names: Sendable {
    var count = 0
    /// Each by what it is without its case and spelling.
    var spellings: [String: String] = [:]
  }

  enum Work: Sendable {
    /// The directory of this name in another; without a name the base.
    case directory(String, in: Directory?)
    /// What is in one and was not listed yet.
    case rest(of: Directory)
    case files([WalkFile], in: Directory)
  }

  /// The rules of the first version, and what finds one of them.
  struct FirstVersion: Sendable {
    let rules: SealRules
    var matcher: RuleMatcher

    init(_ rules: SealRules, _ matcher: RuleMatcher) {
      self.rules = rules
      self.matcher = matcher
    }

    /// Whether it covers a path.
    mutating func covers(_ path: String) throws(Finding) -> Bool {
      try matcher.rule(for: path.utf8).map { !rules.rules[$0].isOmitted } ?? false
    }
  }

  struct WalkFile: Sendable {
    let name: String
    /// Relative to the base.
    let path: String
    let isOptional: Bool
    let order: Int
    let wanted: ResourceSeal.Algorithm?
    let wantsFirstVersion: Bool
  }

  init(_ bundle: CodeBundle, _ rules: SealRules, _ purpose: SealPurpose) {
    self.bundle = bundle
    self.rules = rules
    self.purpose = purpose
    stack = WorkStack([.directory("", in: nil)])
  }

  /// Walks; returns what there is, ordered by path, and what is wrong with some of it.
  func run() throws(Finding) -> (items: [SealItem], findings: [Finding]) {
    // Made once, so that rules that are no good are one finding.
    let matcher = try rules.matcher()
    var firstVersion: FirstVersion?
    if case .sealing(let rules) = purpose { firstVersion = FirstVersion(rules, try rules.matcher()) }
    let first = firstVersion
    stack.work(name: "seal") {
      let walker = SealWalker(walk: self, matcher: matcher, firstVersion: first)
      return { walker.work(on: $0) }
    }
    return results.take()
  }

  /// Takes over what one thread has found.
  func report(_ items: [SealItem], _ findings: [Finding]) { results.add(items, findings) }
}

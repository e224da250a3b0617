// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists

/// One rule of what a seal covers.
package struct SealRule: Equatable, Sendable {
  /// A regular expression that is looked for in paths relative to ``CodeBundle/base``.
  package var pattern: String
  package var weight: Double = 1
  /// What matches is not sealed.
  package var isOmitted = false
  /// What matches may be missing.
  package var isOptional = false
  /// What matches and is a directory with a dot in its name is a bundle of its own.
  package var isNested = false

  package init(
    _ pattern: String, weight: Double = 1, isOmitted: Bool = false, isOptional: Bool = false,
    isNested: Bool = false
  ) {
    self.pattern = pattern
    self.weight = weight
    self.isOmitted = isOmitted
    self.isOptional = isOptional
    self.isNested = isNested
  }

  /// What is written into the seal: as short as it can be said.
  var value: PropertyList {
    if self == SealRule(pattern) { return .boolean(true) }
    if self == SealRule(pattern, isOmitted: true) { return .boolean(false) }
    var dictionary = PropertyList.Dictionary()
    if isNested { dictionary["nested"] = .boolean(true) }
    if isOmitted { dictionary["omit"] = .boolean(true) }
    if isOptional { dictionary["optional"] = .boolean(true) }
    if weight != 1 { dictionary["weight"] = .real(weight) }
    return .dictionary(dictionary)
  }

  /// Reads one rule.
  init(_ pattern: String, _ value: PropertyList) throws(Finding) {
    self.init(pattern)
    switch value {
    case .boolean(let includes): isOmitted = !includes
    case .dictionary(let dictionary):
      func flag(_ key: String) throws(Finding) -> Bool {
        guard let value = dictionary[key] else { return false }
        guard let flag = value.boolean else {
          throw Finding(.badRules, detail: "'\(pattern)': \(key) is not a boolean")
        }
        return flag
      }
      isOmitted = try flag("omit")
      isOptional = try flag("optional")
      isNested = try flag("nested")
      if let value = dictionary["weight"] {
        guard let number = value.number, number.isFinite, number >= 0 else {
          throw Finding(.badRules, detail: "'\(pattern)': the weight is not a number")
        }
        weight = number
      }
    default: throw Finding(.badRules, detail: "'\(pattern)' is neither a boolean nor a dictionary")
    }
  }
}

/// The rules of one seal.
package struct SealRules: Equatable, Sendable {
  /// How many there may be.
  private static let limit = 500

  /// Ordered by their patterns.
  package let rules: [SealRule]

  /// Takes rules with patterns that can be read.
  package init(_ rules: [SealRule]) throws(Finding) {
    guard rules.count <= Self.limit else { throw Finding(.badRules, detail: "there are too many rules") }
    self.rules = rules.inOrder { $0.pattern.precedes($1.pattern) }
    _ = try matcher()
  }

  init(reading list: PropertyList.Dictionary) throws(Finding) {
    var rules: [SealRule] = []
    for (pattern, value) in list.entries { rules.append(try SealRule(pattern, value)) }
    try self.init(rules)
  }

  /// What finds the rule for a path.
  func matcher() throws(Finding) -> RuleMatcher { try RuleMatcher(rules) }

  /// As they are written.
  var list: PropertyList.Dictionary {
    var list = PropertyList.Dictionary()
    for rule in rules { list[rule.pattern] = rule.value }
    return list
  }

  /// Whether they leave something unsealed that Apple's do not.
  package var areWeak: Bool {
    !rules.contains(SealRule("^.*"))
      || rules.contains { $0.isOmitted && !Self.allowedOmissions.contains($0.pattern) }
  }

  private static let allowedOmissions = [
    #"^(.*/)?\.DS_Store$"#, #"^Info\.plist$"#, #"^PkgInfo$"#, #"^Resources/.*\.lproj/locversion.plist$"#,
    #"^.*\.lproj/locversion.plist$"#,
  ]
}

extension SealRules {
  /// The rules that Apple's tools give a bundle of this shape, as `rules2`.
  package static func standard(_ shape: CodeBundle.Shape) throws(Finding) -> SealRules {
    let resources = shape == .contents ? "Resources/" : ""
    var rules = [
      SealRule("^.*"),
      SealRule(#".*\.dSYM($|/)"#, weight: 11),
      SealRule(#"^(.*/)?\.DS_Store$"#, weight: 2000, isOmitted: true),
      SealRule(#"^Info\.plist$"#, weight: 20, isOmitted: true),
      SealRule(#"^PkgInfo$"#, weight: 20, isOmitted: true),
      SealRule(#"^version\.plist$"#, weight: 20),
      SealRule(#"^embedded\.provisionprofile$"#, weight: 20),
    ]
    rules += localizations(resources)
    if shape == .contents {
      let places =
        "Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|"
        + "Library/(Automator|Spotlight|LoginItems)"
      rules += [
        SealRule("^[^/]+$", weight: 10, isNested: true),
        SealRule("^(\(places))/", weight: 10, isNested: true),
        SealRule("^\(resources)", weight: 20),
      ]
    }
    return try SealRules(rules)
  }

  /// The rules of the first version, that the list of SHA-1 digests goes by.
  package static func firstVersion(_ shape: CodeBundle.Shape) throws(Finding) -> SealRules {
    let resources = shape == .contents ? "Resources/" : ""
    let all = SealRule(shape == .contents ? "^\(resources)" : "^.*")
    return try SealRules([SealRule("^version.plist$"), all] + localizations(resources))
  }

  private static func localizations(_ resources: String) -> [SealRule] {
    [
      SealRule("^\(resources).*\\.lproj/", weight: 1000, isOptional: true),
      SealRule("^\(resources)Base\\.lproj/", weight: 1010),
      SealRule("^\(resources).*\\.lproj/locversion.plist$", weight: 1100, isOmitted: true),
    ]
  }
}

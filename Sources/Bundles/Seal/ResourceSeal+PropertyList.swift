// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import PropertyLists

// The seal as a property list, as Apple's tools write and read it.

extension ResourceSeal {
  /// Reads `CodeResources`.
  package init(
    reading bytes: [UInt8], atMost values: Int = PropertyList.valueLimit
  ) throws(Finding) {
    let list: PropertyList
    do throws(PropertyListError) {
      list = try PropertyList(reading: bytes, atMost: values)
    } catch {
      throw Self.malformed(error.description)
    }
    guard let all = list.dictionary, let files = all["files"]?.dictionary,
      let rules = all["rules"]?.dictionary
    else {
      throw Self.malformed("there are no dictionaries 'files' and 'rules'")
    }
    firstVersionRules = try SealRules(reading: rules)
    isSecondVersion = all["files2"] != nil
    if isSecondVersion {
      guard let files2 = all["files2"]?.dictionary, let rules2 = all["rules2"]?.dictionary else {
        throw Self.malformed("there are no dictionaries 'files2' and 'rules2'")
      }
      self.rules = try SealRules(reading: rules2)
      entries = try files2.entries.map { (entry) throws(Finding) in try Entry(entry.key, entry.value) }
      Self.note(files, in: &entries)
    } else {
      self.rules = firstVersionRules
      entries = try files.entries.map { (entry) throws(Finding) in try Entry(entry.key, entry.value) }
    }
    try Self.checkSpellings(of: entries)
  }

  static func malformed(_ detail: String) -> Finding { Finding(.malformedCodeResources, detail: detail) }

  /// Takes over what the list of the first version says of what the second one lists.
  private static func note(_ files: PropertyList.Dictionary, in entries: inout [Entry]) {
    var index = 0
    for (key, value) in files.entries {
      while index < entries.count, entries[index].path.precedes(key) { index += 1 }
      guard index < entries.count, entries[index].path.hasSameBytes(as: key) else { continue }
      // What has no digest there says nothing.
      guard let digest = value.data ?? value.dictionary?["hash"]?.data else { continue }
      entries[index].firstVersionDigest = digest
      entries[index].isOptionalInFirstVersion = value.dictionary?["optional"]?.boolean ?? false
    }
  }

  /// As it is written into a bundle.
  package func codeResources() throws(PropertyListError) -> [UInt8] {
    var files: [(key: String, value: PropertyList)] = []
    var files2: [(key: String, value: PropertyList)] = []
    for entry in entries {
      files2.append((entry.path, entry.value))
      guard let digest = entry.firstVersionDigest else { continue }
      var value = PropertyList.Dictionary()
      value["hash"] = .data(digest)
      value["optional"] = .boolean(true)
      files.append((entry.path, entry.isOptionalInFirstVersion ? .dictionary(value) : .data(digest)))
    }
    guard let first = PropertyList.Dictionary(files), let second = PropertyList.Dictionary(files2) else {
      throw PropertyListError("a path occurs twice")
    }
    var list = PropertyList.Dictionary()
    list["files"] = .dictionary(first)
    list["files2"] = .dictionary(second)
    list["rules"] = .dictionary(firstVersionRules.list)
    list["rules2"] = .dictionary(rules.list)
    return try PropertyList.dictionary(list).xml()
  }
}

extension ResourceSeal.Entry {
  var value: PropertyList {
    var value = PropertyList.Dictionary()
    switch content {
    case .file(let algorithm, let digest):
      // Apple's short form of an entry that has nothing else to say.
      if algorithm == .sha1, !isOptional { return .data(digest) }
      value[algorithm.key] = .data(digest)
    case .symlink(let target): value["symlink"] = .string(target)
    case .nested(let seal):
      value["cdhash"] = .data(seal.cdhash)
      value["requirement"] = .string(seal.requirement)
    }
    if isOptional { value["optional"] = .boolean(true) }
    return .dictionary(value)
  }

  /// Reads an entry of either version.
  init(_ path: String, _ value: PropertyList) throws(Finding) {
    try Self.checkPath(path)
    if let digest = value.data {
      guard digest.count == ResourceSeal.Algorithm.sha1.length else {
        throw Self.malformed(path, "not a SHA-1 digest")
      }
      self.init(path: path, content: .file(.sha1, digest: digest), isOptional: false)
      return
    }
    guard let entry = value.dictionary else { throw Self.malformed(path, "not a dictionary") }
    var isOptional = false
    if let value = entry["optional"] {
      guard let flag = value.boolean else { throw Self.malformed(path, "'optional' is not a boolean") }
      isOptional = flag
    }
    let contents = [try Self.file(path, entry), try Self.symlink(path, entry), try Self.nested(path, entry)]
    let found = contents.compactMap { $0 }
    guard found.count == 1 else { throw Self.malformed(path, "not exactly one of hash, symlink and cdhash") }
    self.init(path: path, content: found[0], isOptional: isOptional)
  }

  /// The strongest digest that is there.
  private static func file(_ path: String, _ entry: PropertyList.Dictionary) throws(Finding) -> ResourceSeal
    .Content?
  {
    // SHA-256 is what everybody writes; the order of the others is their strength.
    for algorithm in [.sha256, .sha512, .sha384, .sha256Truncated, .sha1] as [ResourceSeal.Algorithm] {
      guard let value = entry[algorithm.key] else { continue }
      guard let digest = value.data, digest.count == algorithm.length else {
        throw malformed(path, "'\(algorithm.key)' is not such a digest")
      }
      return .file(algorithm, digest: digest)
    }
    return nil
  }

  private static func symlink(_ path: String, _ entry: PropertyList.Dictionary) throws(Finding)
    -> ResourceSeal.Content?
  {
    guard let value = entry["symlink"] else { return nil }
    guard let target = value.string, !target.isEmpty else { throw malformed(path, "'symlink' is not a path") }
    return .symlink(target: target)
  }

  private static func nested(_ path: String, _ entry: PropertyList.Dictionary) throws(Finding) -> ResourceSeal
    .Content?
  {
    guard entry["cdhash"] != nil || entry["requirement"] != nil else { return nil }
    guard let cdhash = entry["cdhash"]?.data, cdhash.count == 20,
      let requirement = entry["requirement"]?.string
    else {
      throw malformed(path, "no 'cdhash' with a 'requirement'")
    }
    return .nested(NestedSeal(cdhash: cdhash, requirement: requirement))
  }

  private static func malformed(_ path: String, _ detail: String) -> Finding {
    Finding(.malformedCodeResources, path, detail: detail)
  }
}

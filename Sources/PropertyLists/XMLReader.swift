// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Reads a property list from XML.
///
/// As much of XML as Apple's tools and others write into property lists: no attributes but those of `plist`,
/// no document type with declarations in it, and no entities but the five that XML has and numeric ones. Line
/// ends stay as they are, as Apple's reader leaves them.
struct XMLReader {
  /// The document as UTF-8, without a byte order mark.
  let bytes: [UInt8]
  var position = 0
  private var values = 0
  private let valueLimit: Int

  init(_ bytes: [UInt8], atMost valueLimit: Int) throws(PropertyListError) {
    self.valueLimit = valueLimit
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) {
      self.bytes = Array(bytes.dropFirst(3))
    } else if bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe]) {
      self.bytes = try Self.utf8(fromUTF16: bytes)
    } else {
      self.bytes = bytes
    }
  }

  /// The whole document, and nothing behind it.
  mutating func document() throws(PropertyListError) -> PropertyList {
    try skipProlog()
    guard try startTag(allowingAttributes: true) == .container("plist") else {
      throw error("a property list must begin with <plist>")
    }
    try skipMisc()
    let value = try value(depth: 0)
    try skipMisc()
    try endTag("plist")
    try skipMisc()
    guard position == bytes.count else { throw error("data after the end of the property list") }
    return value
  }

  // MARK: Values

  private mutating func value(depth: Int) throws(PropertyListError) -> PropertyList {
    let tag = try startTag()
    return try value(of: tag, depth: depth)
  }

  private mutating func value(of tag: Tag, depth: Int) throws(PropertyListError) -> PropertyList {
    values += 1
    guard values <= valueLimit else { throw error("too many values") }
    switch tag {
    case .empty("dict"):
      try checkDepth(depth + 1)
      return .dictionary(PropertyList.Dictionary())
    case .empty("array"):
      try checkDepth(depth + 1)
      return .array([])
    case .empty("string"): return .string("")
    case .empty("data"): return .data([])
    case .empty("true"): return .boolean(true)
    case .empty("false"): return .boolean(false)
    case .empty(let name): throw error("<\(name)/> has no value")
    case .container("dict"): return try dictionary(depth: depth + 1)
    case .container("array"): return try array(depth: depth + 1)
    case .container("true"), .container("false"):
      let name = tag.name
      guard try text(until: name).isEmpty else { throw error("<\(name)> must be empty") }
      return .boolean(name == "true")
    case .container(let name): return try scalar(name, text(until: name))
    }
  }

  private mutating func scalar(_ name: String, _ text: ArraySlice<UInt8>) throws(PropertyListError)
    -> PropertyList
  {
    switch name {
    case "string": return .string(try string(text))
    case "data":
      guard let data = Base64.decode(text) else { throw error("<data> that is not base64") }
      return .data(data)
    case "integer":
      guard let number = Self.integer(text) else { throw error("<integer> that is invalid or too large") }
      return number
    case "real":
      guard let number = Self.real(text) else { throw error("<real> that is not a number") }
      return .real(number)
    case "date":
      guard let date = PropertyListDate.seconds(text) else { throw error("<date> that is not a date") }
      return .date(date)
    default: throw error("unknown element <\(name)>")
    }
  }

  private mutating func array(depth: Int) throws(PropertyListError) -> PropertyList {
    try checkDepth(depth)
    var found: [PropertyList] = []
    while true {
      try skipMisc()
      if try takesEndTag("array") { return .array(found) }
      found.append(try value(depth: depth))
    }
  }

  private mutating func dictionary(depth: Int) throws(PropertyListError) -> PropertyList {
    try checkDepth(depth)
    var found: [(key: String, value: PropertyList)] = []
    while true {
      try skipMisc()
      if try takesEndTag("dict") { break }
      let key: String
      switch try startTag() {
      case .empty("key"): key = ""
      case .container("key"): key = try string(text(until: "key"))
      default: throw error("a dictionary must have a <key> before each value")
      }
      try skipMisc()
      found.append((key, try value(depth: depth)))
    }
    if found.count == 1, found[0].key == PropertyList.uidKey, case .integer(let number) = found[0].value,
      let uid = UInt64(exactly: number)
    {
      return .uid(uid)
    }
    guard let dictionary = PropertyList.Dictionary(found) else { throw error("a dictionary has a key twice") }
    return .dictionary(dictionary)
  }

  private func checkDepth(_ depth: Int) throws(PropertyListError) {
    guard depth <= PropertyList.depthLimit else { throw error("nested too deeply") }
  }

  func error(_ reason: String) -> PropertyListError { PropertyListError(reason, at: position) }
}

extension PropertyList {
  /// The key of a dictionary that stands for a `uid` in XML.
  static let uidKey = "CF$UID"
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists
internal import TestSupport
internal import Testing

/// Python's plistlib and ours understand each other.
@Suite struct PropertyListPythonTests {
  /// Reads each file in either form, and writes it back in both.
  private static let script = """
    import plistlib, sys, os
    for name in sorted(os.listdir(sys.argv[1])):
      path = os.path.join(sys.argv[1], name)
      with open(path, 'rb') as file: value = plistlib.load(file)
      with open(path + '.binary', 'wb') as file: plistlib.dump(value, file, fmt=plistlib.FMT_BINARY)
      with open(path + '.xml', 'wb') as file: plistlib.dump(value, file, fmt=plistlib.FMT_XML)
    """

  @Test func listsComeBackFromPython() throws {
    let directory = try TemporaryDirectory()
    var lists = RandomPropertyLists(seed: 1)
    // Python writes a carriage return as a line feed.
    lists.hasOddities = false
    var values: [PropertyList] = []
    for number in 0..<400 {
      let value = lists.value()
      values.append(value)
      for (name, bytes) in [("x", try value.xml()), ("b", try value.binary())] {
        let text = bytes
        try write(text, to: directory, "\(number)\(name)")
      }
    }
    let result = try Program.run(["python3", "-c", Self.script, directory.path])
    #expect(result.status == 0, "\(result.errors)")
    for (number, value) in values.enumerated() {
      for name in ["x.xml", "x.binary", "b.xml", "b.binary"] {
        let bytes = try read(directory, "\(number)\(name)")
        #expect(try PropertyList(reading: bytes) == value, "\(number)\(name)")
      }
      // To the byte, where both agree on how a number is written.
      if !value.hasReal { #expect(try read(directory, "\(number)x.xml") == value.xml()) }
    }
    #expect(values.count { !$0.hasReal } > 100)
  }

  @Test func carriageReturnsAndControlsReachPython() throws {
    let directory = try TemporaryDirectory()
    var dictionary = PropertyList.Dictionary()
    dictionary["Icon\r"] = .string("a\r\nb\u{7f}")
    try write(PropertyList.dictionary(dictionary).xml(), to: directory, "list")
    let result = try Program.run([
      "python3", "-c", "import plistlib, sys; print(ascii(plistlib.load(open(sys.argv[1], 'rb'))))",
      directory.appending("list"),
    ])
    #expect(result.output == "{'Icon\\r': 'a\\r\\nb\\x7f'}\n")
  }

  private func write(_ bytes: [UInt8], to directory: TemporaryDirectory, _ name: String) throws {
    let opened = try directory.open()
    try opened.fd.replaceContents(of: name, with: bytes, mode: 0o644)
  }

  private func read(_ directory: TemporaryDirectory, _ name: String) throws -> [UInt8] {
    let opened = try directory.open()
    return try opened.fd.contents(of: name, limit: 1 << 24)
  }
}

extension PropertyList {
  fileprivate var hasReal: Bool {
    switch self {
    case .real: true
    case .array(let values): values.contains { $0.hasReal }
    case .dictionary(let dictionary): dictionary.entries.contains { $0.value.hasReal }
    default: false
    }
  }
}

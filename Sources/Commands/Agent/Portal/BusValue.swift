// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSessionBus

/// What stands in a message on the bus, as far as we send it.
indirect enum BusValue {
  case string(String)
  case path(String)
  case bool(Bool)
  /// A string of bytes that ends in a zero.
  case bytes([UInt8])
  case strings([String])
  case options([(name: String, value: BusValue)])
  /// Names with the patterns of the files that they stand for.
  case filters([(name: String, patterns: [String])])

  /// Its type, in the letters of D-Bus.
  var type: String {
    switch self {
    case .string: "s"
    case .path: "o"
    case .bool: "b"
    case .bytes: "ay"
    case .strings: "as"
    case .options: "a{sv}"
    case .filters: "a(sa(us))"
    }
  }

  /// Writes it to the end of a message; false where that fails, as for want of memory.
  func append(to message: OpaquePointer) -> Bool {
    switch self {
    case .string(let text): return Self.append(text, "s", message)
    case .path(let text): return Self.append(text, "o", message)
    case .bool(let value):
      var number: Int32 = value ? 1 : 0
      return sd_bus_message_append_basic(message, Self.letter("b"), &number) >= 0
    case .bytes(let bytes):
      return sd_bus_message_append_array(message, Self.letter("y"), bytes + [0], bytes.count + 1) >= 0
    case .strings(let texts):
      return Self.container("a", "s", message) { texts.allSatisfy { Self.append($0, "s", message) } }
    case .options(let options):
      return Self.container("a", "{sv}", message) {
        options.allSatisfy { option in
          Self.container("e", "sv", message) {
            Self.append(option.name, "s", message)
              && Self.container("v", option.value.type, message) { option.value.append(to: message) }
          }
        }
      }
    case .filters(let filters):
      return Self.container("a", "(sa(us))", message) {
        filters.allSatisfy { filter in
          Self.container("r", "sa(us)", message) {
            Self.append(filter.name, "s", message)
              && Self.container("a", "(us)", message) {
                filter.patterns.allSatisfy { pattern in
                  Self.container("r", "us", message) {
                    // A pattern as of a shell.
                    var kind: UInt32 = 0
                    return sd_bus_message_append_basic(message, Self.letter("u"), &kind) >= 0
                      && Self.append(pattern, "s", message)
                  }
                }
              }
          }
        }
      }
    }
  }

  static func letter(_ letter: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: letter.value) }

  private static func append(_ text: String, _ type: Unicode.Scalar, _ message: OpaquePointer) -> Bool {
    text.withCString { sd_bus_message_append_basic(message, letter(type), $0) >= 0 }
  }

  private static func container(
    _ kind: Unicode.Scalar, _ contents: String, _ message: OpaquePointer, _ body: () -> Bool
  ) -> Bool {
    sd_bus_message_open_container(message, letter(kind), contents) >= 0 && body()
      && sd_bus_message_close_container(message) >= 0
  }
}

/// What has come in a message on the bus.
struct BusReader {
  /// What the pointer is valid with.
  private let owner: AnyObject
  private let message: OpaquePointer

  init(_ message: OpaquePointer, of owner: AnyObject) {
    self.message = message
    self.owner = owner
  }

  func number() -> UInt32? {
    var value: UInt32 = 0
    return sd_bus_message_read_basic(message, BusValue.letter("u"), &value) > 0 ? value : nil
  }

  func text(_ type: Unicode.Scalar = "s") -> String? {
    var value: UnsafePointer<CChar>?
    guard sd_bus_message_read_basic(message, BusValue.letter(type), &value) > 0, let value else { return nil }
    return String(cString: value)
  }

  /// A list of strings; at most so many.
  func texts(most: Int = 65536) -> [String]? {
    guard sd_bus_message_enter_container(message, BusValue.letter("a"), "s") > 0 else { return nil }
    var texts: [String] = []
    while texts.count < most, let next = text() { texts.append(next) }
    return sd_bus_message_exit_container(message) >= 0 ? texts : nil
  }

  /// Among options, the list of strings that has this name.
  func texts(named name: String) -> [String]? {
    guard sd_bus_message_enter_container(message, BusValue.letter("a"), "{sv}") > 0 else { return nil }
    while sd_bus_message_enter_container(message, BusValue.letter("e"), "sv") > 0 {
      guard let key = text() else { return nil }
      var contents: UnsafePointer<CChar>?
      if key == name, sd_bus_message_peek_type(message, nil, &contents) > 0, let contents,
        String(cString: contents) == "as"
      {
        guard sd_bus_message_enter_container(message, BusValue.letter("v"), "as") > 0 else { return nil }
        return texts()
      }
      guard sd_bus_message_skip(message, "v") > 0, sd_bus_message_exit_container(message) >= 0 else {
        return nil
      }
    }
    return nil
  }
}

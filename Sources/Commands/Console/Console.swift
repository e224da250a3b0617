// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

/// Where a command's words go.
///
/// There is no other way out, and all of these lead past `sanitized`: what is printed is made of names that
/// strangers chose, and nobody has to remember that. A line is one line, whatever is in it. Only
/// `print(exactly:)` prints bytes as they are, for programs.
struct Console: Sendable {
  private let output: @Sendable ([UInt8]) -> Void
  private let errors: @Sendable ([UInt8]) -> Void
  /// Where to say how far something is; nil if nobody looks.
  private let progress: (@Sendable ([UInt8]) -> Void)?
  /// Whether a person reads what is printed.
  let isTerminal: Bool
  /// How much is told, and in which form.
  var manner = Manner()
  /// Why output could not be written; nil while all was.
  private let failure: @Sendable () -> Errno?

  init(
    output: @escaping @Sendable ([UInt8]) -> Void, errors: @escaping @Sendable ([UInt8]) -> Void,
    progress: (@Sendable ([UInt8]) -> Void)? = nil, isTerminal: Bool = false,
    failure: @escaping @Sendable () -> Errno? = { nil }
  ) {
    self.failure = failure
    self.output = output
    self.errors = errors
    self.progress = progress
    self.isTerminal = isTerminal
  }

  /// Standard output and standard error.
  static let standard: Console = {
    let errors: @Sendable ([UInt8]) -> Void = { try? FD(2).writeAll($0) }
    let output = StandardOutput()
    var console = Console(
      output: { output.write($0) }, errors: errors, progress: isatty(2) == 1 ? errors : nil,
      isTerminal: isatty(1) == 1, failure: { output.failure })
    console.manner.colored = [isatty(1) == 1 ? .output : [], isatty(2) == 1 ? .errors : []]
    return console
  }()

  /// For what is told beside a program's own output.
  var aside: Console {
    var console = Console(output: errors, errors: errors)
    console.manner = manner
    return console
  }

  /// Whether output could not be written.
  var hasFailed: Bool { failure() != nil }

  /// Tells why output could not be written, and gives the status for that; nil while all was.
  ///
  /// That a reader has gone is not told: it had enough.
  func tellFailure() -> ExitCode? {
    guard let error = failure() else { return nil }
    if error != .EPIPE { note(CommandFailure(error, "can't write to standard output: \(error.message)")) }
    return .failed
  }

  /// Prints a line.
  func print(_ line: String) { print(lines: [line]) }

  /// Prints lines.
  func print(lines: [String]) { output(Self.bytes(lines)) }

  /// Prints a text of several lines that is our own, as help is.
  func print(text: String) {
    print(lines: Self.lines(text))
  }

  /// Prints a path for whoever goes on with it: exactly where that is a program.
  func print(path: String) { output(shown(Array(path.utf8)) + [UInt8(ascii: "\n")]) }

  /// Prints bytes that a program reads, as they are.
  func print(exactly bytes: [UInt8]) { output(bytes) }

  /// A name as it may be printed with `print(exactly:)`: for a program it stays as it is.
  func shown(_ name: [UInt8]) -> [UInt8] {
    isTerminal ? Array(String(decoding: name, as: UTF8.self).sanitized.utf8) : name
  }

  /// Passes on what another program has told, which is a text of several lines.
  func relay(errors text: [UInt8]) {
    errors(Self.bytes(Self.lines(String(decoding: text, as: UTF8.self))))
  }

  /// Passes on a line that tells something, with its first word in a colour where that is wanted.
  func tell(_ first: String, _ color: Color, _ rest: String, _ more: [String], isError: Bool) {
    let start = manner.colors(isError ? .errors : .output) ? color.around(first) : Array(first.utf8)
    let line = start + Self.bytes([rest] + more)
    if isError { errors(line) } else { output(line) }
  }

  /// Passes on a question of ours without the end of its line; a line's end alone is one.
  func ask(_ question: String) { errors(Array((question == "\n" ? question : question.sanitized).utf8)) }

  /// Shows how far something is in place of what was shown before; nil only takes that away.
  func show(progress text: String?) {
    // Back to the start of the line, and away with what stands there.
    progress?(Array("\r\u{1b}[K\(text?.sanitized ?? "")".utf8))
  }

  /// Whether somebody looks at how far something is.
  var showsProgress: Bool { progress != nil && !manner.isQuiet }

  /// Prints a value for programs: keys sorted, one to a line.
  func print(json value: some Encodable) { output(Self.json(value, .pretty)) }

  /// Tells programs something beside the result, in one line.
  func tell(json value: some Encodable) { errors(Self.json(value, .compact)) }

  private static func json(_ value: some Encodable, _ layout: JSONText.Layout) -> [UInt8] {
    guard let bytes = try? JSONText.encode(value, layout) else { return [] }
    return Array((escaped(String(decoding: bytes, as: UTF8.self)) + "\n").utf8)
  }

  /// Prints a value for programs that read line by line.
  func print(jsonLine value: some Encodable) {
    guard let bytes = try? JSONText.encode(value) else { return }
    output(Array((Self.escaped(String(decoding: bytes, as: UTF8.self)) + "\n").utf8))
  }

  /// Prints a list, for programs or as a table; `none` says that there is nothing in it.
  func print<Item: Encodable>(
    list items: [Item], json: Bool, none: String, columns: [String], _ row: (Item) -> [String]
  ) {
    if json {
      print(json: items)
    } else if items.isEmpty {
      print(none)
    } else {
      print(table: [columns] + items.map(row))
    }
  }

  /// Prints rows with their columns below each other.
  func print(table rows: [[String]]) { print(lines: Self.aligned(rows)) }

  /// Rows as lines, with their columns below each other.
  static func aligned(_ rows: [[String]]) -> [String] {
    let rows = rows.map { $0.map(\.sanitized) }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = row.enumerated().map { index, cell in
        index == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[index] - cell.count)
      }
      return cells.joined(separator: "  ")
    }
  }

  private static func bytes(_ lines: [String]) -> [UInt8] {
    lines.flatMap { Array($0.sanitized.utf8) + [UInt8(ascii: "\n")] }
  }

  /// The lines of a text; the end of the last one need not be there.
  private static func lines(_ text: String) -> [String] {
    let bytes = text.utf8.last == UInt8(ascii: "\n") ? text.utf8.dropLast() : text.utf8[...]
    return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// JSON in which a terminal finds nothing to obey, and a program the same as before.
  ///
  /// Line ends are the encoder's own: those in strings are escaped already, as all controls of ASCII are but
  /// DEL.
  private static func escaped(_ json: String) -> String {
    if json.utf8.allSatisfy({ $0 < 0x7f }) { return json }
    var text = ""
    for scalar in json.unicodeScalars {
      if scalar == "\n" || scalar.isPrintable {
        text.unicodeScalars.append(scalar)
      } else {
        for unit in Character(scalar).utf16 {
          let digits = String(unit, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      }
    }
    return text
  }
}

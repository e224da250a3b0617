// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What is told about a command, and not its result.

extension Console {
  /// How much is told, and in which form.
  struct Manner: Sendable {
    /// Only results and errors.
    var isQuiet = false
    /// Also what is used on the way.
    var isVerbose = false
    /// Errors and notes are objects of JSON, one to a line.
    var isJSON = false
    /// Which streams may have colours: terminals, unless somebody does not want them.
    var colored: Streams = []

    /// The options that ask for it.
    var words: [String] { (isQuiet ? ["--quiet"] : []) + (isVerbose ? ["--verbose"] : []) }

    func colors(_ stream: Streams) -> Bool { colored.contains(stream) }
  }

  struct Streams: OptionSet, Sendable {
    let rawValue: Int
    static let output = Streams(rawValue: 1)
    static let errors = Streams(rawValue: 2)
  }

  enum Color: String, Sendable {
    case red = "31"
    case green = "32"
    case yellow = "33"
    case plain = "0"

    /// The text in this colour; the letters themselves are our own.
    func around(_ text: String) -> [UInt8] {
      self == .plain ? Array(text.utf8) : Array("\u{1b}[1;\(rawValue)m\(text)\u{1b}[0m".utf8)
    }
  }

  /// Tells what was done.
  func say(_ sentence: String) { if !manner.isQuiet { self.print(sentence) } }

  /// Tells something beside the result that is no error.
  func inform(_ message: String) { if !manner.isQuiet { note(message) } }

  /// Tells what is used on the way.
  func detail(_ message: @autoclosure () -> String) { if manner.isVerbose { note(message()) } }

  /// Tells something beside the result; what is told in several lines has the rest of them behind the first.
  func note(_ message: String, _ more: [String] = []) {
    if manner.isJSON { return tell(json: ["note": Told(message: message, lines: more)]) }
    tell("insula:", .plain, " \(message)", more, isError: true)
  }

  /// Tells why a command failed.
  func note(_ failure: CommandFailure) {
    if manner.isJSON { return tell(json: ["error": Told(failure)]) }
    tell("insula:", .red, " \(failure.message)", failure.lines, isError: true)
  }

  /// Prints a line whose first word, one of our own, says how good that is.
  func report(_ label: String, _ color: Color, _ rest: String) {
    tell(label, color, rest, [], isError: false)
  }

  /// An error or a note, for programs.
  private struct Told: Encodable {
    let message: String
    var lines: [String]?
    var code: String?
    var exit: Int32?

    init(message: String, lines: [String]) {
      self.message = message
      self.lines = lines.isEmpty ? nil : lines
    }

    init(_ failure: CommandFailure) {
      self.init(message: failure.message, lines: failure.lines)
      code = failure.code.name
      exit = failure.code.rawValue
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What the configuration files say together, and which of them says it.
struct Configuration: Sendable {
  /// What counts for a key, and where that comes from.
  struct Setting: Equatable {
    let value: String
    let origin: Origin
  }

  enum Origin: Equatable, Sendable {
    case builtIn
    case environment(String)
    case file(String, line: Int)

    var words: String {
      switch self {
      case .builtIn: "built in"
      case .environment(let variable): "the variable \(variable)"
      case .file(let path, let line): "\(path):\(line)"
      }
    }
  }

  private var values: [String: Setting] = [:]
  /// Those that there are.
  private(set) var files: [String] = []
  /// What is wrong with the files, as sentences that begin with the place.
  private(set) var problems: [String] = []

  /// Where there are no files.
  init() {}

  /// Reads all files that count for whoever runs a command.
  init(for context: Context) {
    for file in ConfigurationFile.all(context) {
      guard let text = file.read() else { continue }
      files.append(file.path)
      problems += text.problems.map { $0.sentence(in: file.path) }
      for entry in text.entries {
        values[entry.key.path] = Setting(
          value: entry.value, origin: .file(file.path, line: entry.line))
      }
    }
  }

  /// What the files say of a key.
  subscript(key: ConfigurationKey) -> Setting? { values[key.path] }
}

extension ConfigurationText.Problem {
  /// With the place in front, as compilers write it.
  func sentence(in path: String) -> String {
    line.map { "\(path):\($0): \(message)" } ?? "\(path) \(message)"
  }
}

extension Context {
  /// What counts for a key, and why: the environment comes before the files.
  func setting(_ key: ConfigurationKey) -> Configuration.Setting {
    if let (variable, value) = key.environment(self) {
      return .init(value: value, origin: .environment(variable))
    }
    guard let found = configuration[key] else { return .init(value: key.builtIn(self), origin: .builtIn) }
    guard case .pathOrInHome = key.kind, found.value.begins(with: "~/") else { return found }
    return .init(value: home + found.value.dropFirst(1), origin: found.origin)
  }

  /// What counts for a key; nil where nothing was chosen.
  func value(_ key: ConfigurationKey) -> String? {
    let value = setting(key).value
    return value.isEmpty ? nil : value
  }

  /// The same, with what the configuration files say, for a command that goes by them.
  ///
  /// What is wrong in a file stops the command: it might do something else than what was meant.
  func configured() throws(CommandFailure) -> Context {
    var context = self
    context.configuration = Configuration(for: self)
    let problems = context.configuration.problems
    for file in context.configuration.files { console.detail("going by \(file)") }
    guard let first = problems.first else { return context }
    let rest = problems.dropFirst()
    var lines = rest.prefix(9).map { "  \($0)" }
    if rest.count > lines.count { lines.append("  and \(rest.count - lines.count) more") }
    lines.append(
      "mend the file; 'insula config --check' checks it, 'insula help configuration' lists the keys")
    throw CommandFailure(.failed, first, lines: lines)
  }
}

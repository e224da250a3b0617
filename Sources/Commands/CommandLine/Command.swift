// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A verb.
protocol Command: SendableMetatype {
  static var description: CommandDescription { get }
  init(_ arguments: ParsedArguments) throws(UsageError)
  func run(in context: Context) throws -> ExitCode
  /// Whether what it does depends on the configuration files, which must be in order then.
  var goesByConfiguration: Bool { get }
}

extension Command {
  var goesByConfiguration: Bool { true }
}

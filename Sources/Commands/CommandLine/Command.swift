// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A verb.
protocol Command: SendableMetatype {
  static var description: CommandDescription { get }
  init(_ arguments: ParsedArguments) throws(UsageError)
  func run(in context: Context) throws -> ExitCode
  /// Whether what it does depends on the configuration files, which must be in order then.
  var goesByConfiguration: Bool { get }
  /// Whether an app may use it in its view: all that it takes is there.
  static var worksInApps: Bool { get }
}

extension Command {
  static var worksInApps: Bool { false }
  var goesByConfiguration: Bool { true }
}

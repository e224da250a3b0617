// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What an argument or the value of an option names, for completion.
enum ValueKind: Sendable {
  /// What every shell knows itself.
  case directory, file, account, group, program
  /// What is asked for when it is needed.
  case app, identity, root
  case helpTopic
  case word([String])
  /// Several words, separated by commas.
  case list([String])
  /// The first one, or else the second one.
  indirect case either(ValueKind, ValueKind)
  case other
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// What the commands about consent have in common.
enum ConsentWords {
  static let services = PrivacyService.allCases.map(\.rawValue)

  static func argument(
    _ help: String, isRequired: Bool = false
  ) -> CommandDescription.Argument {
    .init(name: "SERVICE", help: help, isRequired: isRequired, kind: .word(services))
  }

  static let app = CommandDescription.Argument(
    name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app)

  /// In two lines: help has no more room in one.
  static let list =
    "The services: \(services.prefix(6).joined(separator: ", ")),\n"
    + "\(services.dropFirst(6).joined(separator: ", "))."

  /// What is to be known of the states, for the help.
  static let states = """
    A state is 'not-determined' until somebody decides, then 'authorized' or 'denied'; 'restricted' where an
    administrator does not allow it, whatever the user says.
    """
}

extension CommandDescription {
  /// A service that a person named; nil for none.
  func service(_ text: String?) throws(UsageError) -> PrivacyService? {
    guard let text else { return nil }
    guard let service = PrivacyService(rawValue: text) else {
      let suggestion = Suggestion.text(for: text, among: ConsentWords.services)
      throw error(
        "there is no service '\(text.sanitized)'\(suggestion); "
          + "known are \(ConsentWords.services.joined(separator: ", "))")
    }
    return service
  }
}

extension ConsentState {
  /// How a command ends that was asked for it.
  var exitCode: ExitCode {
    switch self {
    case .authorized: .ok
    case .denied, .restricted: .notPermitted
    case .notDetermined: .undecided
    }
  }
}

extension ConsentStatus {
  /// What it comes to, as a sentence.
  var sentence: String {
    switch state {
    case .authorized: "\(identifier) may \(service.use)\(because)."
    case .denied: "\(identifier) may not \(service.use)."
    case .notDetermined: "\(identifier) has to ask before it may \(service.use)."
    case .restricted:
      "\(identifier) may not \(service.use): an administrator does not allow it\(because)."
    }
  }

  private var because: String { reason.map { " (\($0))" } ?? "" }

  /// For a table.
  var stateWords: String { state.rawValue + because }
  var changedWords: String { changed.map(utcText) ?? "-" }
}

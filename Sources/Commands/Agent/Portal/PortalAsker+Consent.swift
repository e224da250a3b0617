// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

extension PortalAsker {
  private static let interface = "org.freedesktop.impl.portal.Access"

  /// Shows the dialog of the first backend that has one; nil if no answer is wanted any more.
  func askConsent(
    _ question: AgentQuestion, _ service: PrivacyService, _ text: String?, _ watch: TaskWatch
  ) throws(CommandFailure) -> AgentAnswer? {
    for backend in try backendNames() {
      let handle = "\(Self.object)/request/insula/\(newToken())"
      guard
        let call = bus.call(
          .init(destination: backend, path: Self.object, interface: Self.interface, name: "AccessDialog"),
          Self.values(question, service, text, handle))
      else { continue }
      closing = .init(
        destination: backend, path: handle, interface: "org.freedesktop.impl.portal.Request", name: "Close")
      guard try wait(watch, until: { !call.messages.isEmpty }) else { return nil }
      closing = nil
      guard let reply = call.messages.first else { return .dismiss }
      if let failure = reply.failure {
        try bus.check()
        if Self.isMissing(failure.name) { continue }
        tell("The dialog was not answered: \(failure.message)", question)
        return .dismiss
      }
      switch reply.reader.number() {
      case 0: return .allow
      case 1: return .deny
      default: return .dismiss
      }
    }
    tell("This desktop has no dialog for that.", question)
    return .dismiss
  }

  private static func values(
    _ question: AgentQuestion, _ service: PrivacyService, _ text: String?, _ handle: String
  ) -> [BusValue] {
    [
      .path(handle), .string(question.identifier), .string(""),
      .string("Allow \"\(question.name)\" to \(service.use)?".withoutMarkup),
      .string(question.signer.withoutMarkup),
      .string((text.map { "It says: \"\($0)\"" } ?? "It does not say why.").withoutMarkup),
      .options([
        ("modal", .bool(true)), ("deny_label", .string("Don't Allow")), ("grant_label", .string("Allow")),
        ("icon", .string("dialog-question")),
      ]),
    ]
  }

  /// Whether a backend is not there, or has no such dialog.
  private static func isMissing(_ error: String) -> Bool {
    let errors = [
      "UnknownMethod", "UnknownInterface", "UnknownObject", "ServiceUnknown", "NameHasNoOwner",
      "NotSupported",
    ]
    let prefix = "org.freedesktop.DBus.Error."
    return errors.contains { error == prefix + $0 } || error.hasPrefix(prefix + "Spawn.")
  }
}

extension String {
  /// The text for a dialog that may take what is in angle brackets for an order.
  var withoutMarkup: String { replacing(each: "<", by: "\u{2039}").replacing(each: ">", by: "\u{203a}") }
}

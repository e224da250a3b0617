// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

extension PortalAsker {
  private static let response = "type='signal',interface='org.freedesktop.portal.Request',member='Response'"
  private static let loss =
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
    + "arg0='\(portal)'"

  /// Has a path chosen, which is empty if none was; nil if no answer is wanted any more.
  func choose(
    _ question: AgentQuestion, _ request: PanelRequest, _ watch: TaskWatch
  ) throws(CommandFailure) -> String? {
    let sender = String(bus.uniqueName.dropFirst().map { $0 == "." ? "_" : $0 })
    let requests = "\(Self.object)/request/\(sender)"
    // The answer may come before the one to our call.
    guard
      let responses = bus.signals(Self.response + ",path_namespace='\(requests)'"),
      let losses = bus.signals(Self.loss),
      let call = bus.call(
        .init(
          destination: Self.portal, path: Self.object, interface: "org.freedesktop.portal.FileChooser",
          name: request.kind == .save ? "SaveFile" : "OpenFile"),
        values(question, request), seconds: 60)
    else {
      tell("The session bus does not work.", question)
      return ""
    }
    guard try wait(watch, until: { !call.messages.isEmpty }) else { return nil }
    try bus.check()
    guard let reply = call.messages.first, reply.failure == nil, let handle = reply.reader.text("o") else {
      tell("The dialog could not be shown: \(call.messages.first?.failure?.message ?? "no answer")", question)
      return ""
    }
    closing = .init(
      destination: Self.portal, path: handle, interface: "org.freedesktop.portal.Request", name: "Close")
    // Anyone can send a signal.
    func response() -> BusMessage? {
      responses.messages.first { $0.path == handle && $0.sender == reply.sender }
    }
    guard try wait(watch, until: { response() != nil || !losses.messages.isEmpty }) else { return nil }
    closing = nil
    try bus.check()
    guard let response = response() else {
      tell("The dialog was not answered: xdg-desktop-portal has ended.", question)
      return ""
    }
    let reader = response.reader
    guard reader.number() == 0 else { return "" }
    guard let address = reader.texts(named: "uris")?.first, let path = Self.path(address) else {
      tell("What was chosen is not a file of this machine.", question)
      return ""
    }
    return path
  }

  private func values(_ question: AgentQuestion, _ request: PanelRequest) -> [BusValue] {
    var options: [(name: String, value: BusValue)] = [
      ("handle_token", .string(newToken())), ("modal", .bool(true)),
      ("accept_label", .string(request.kind == .save ? "Save" : "Choose")),
    ]
    if let tree { options.append(("current_folder", .bytes(Array("\(tree.root)/\(tree.home)".utf8)))) }
    switch request.kind {
    case .folder: options.append(("directory", .bool(true)))
    case .save: options += request.name.map { [("current_name", .string($0))] } ?? []
    case .file: break
    }
    if request.kind != .folder, !FileType.areAll(request.types) {
      let extensions = FileType.extensions(of: request.types)
      let name = extensions.prefix(6).map { ".\($0)" }.joined(separator: ", ")
      options.append(("filters", .filters([(name, extensions.map(Self.pattern))])))
    }
    return [.string(""), .string("\(question.sentence) (\(question.signer))"), .options(options)]
  }

  /// A pattern for names that end so, in letters of either case.
  private static func pattern(_ ending: String) -> String {
    "*."
      + ending.map { letter in
        letter.isLetter ? "[\(letter.lowercased())\(letter.uppercased())]" : String(letter)
      }.joined()
  }

  /// The path that a file's address stands for; nil for what is elsewhere.
  static func path(_ address: String) -> String? {
    guard address.begins(with: "file://") else { return nil }
    var rest = Array(address.utf8.dropFirst(7))[...]
    if rest.starts(with: "localhost/".utf8) { rest = rest.dropFirst(9) }
    guard rest.first == UInt8(ascii: "/") else { return nil }
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
        value != 0
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}

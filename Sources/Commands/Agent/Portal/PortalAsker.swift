// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// Asks on the person's desktop, through xdg-desktop-portal.
///
/// Consent is asked for by a dialog of the backend of the desktop's (Access), which shows what it is given;
/// files are chosen by the portal's own (FileChooser).
final class PortalAsker: Asker {
  static let portal = "org.freedesktop.portal.Desktop"
  static let backends = "org.freedesktop.impl.portal.desktop."
  static let object = "/org/freedesktop/portal/desktop"

  let bus: SessionBus
  let tree: PanelTree?
  private let console: Console
  private var question: AgentQuestion?
  /// What to call to take the dialog off the screen.
  var closing: SessionBus.Method?
  private var choice: PanelTree.Choice?
  private var isRefused = false
  private var count = 0

  /// Throws where there is no desktop.
  init(_ tree: PanelTree?, _ context: Context) throws(CommandFailure) {
    self.tree = tree
    console = context.console
    bus = try SessionBus()
    let isOnScreen = ["WAYLAND_DISPLAY", "DISPLAY"].contains { context.environment[$0]?.isEmpty == false }
    let names = try names(owned: true) + (isOnScreen ? names(owned: false) : [])
    guard names.contains(where: { $0 == Self.portal || $0.hasPrefix(Self.backends) }) else {
      throw CommandFailure(.failed, "there is no desktop with xdg-desktop-portal on the session bus")
    }
  }

  /// The names that somebody has on the bus, or that are started when they are called.
  private func names(owned: Bool) throws(CommandFailure) -> [String] {
    let name = owned ? "ListNames" : "ListActivatableNames"
    let bus = "org.freedesktop.DBus"
    let method = SessionBus.Method(
      destination: bus, path: "/org/freedesktop/DBus", interface: bus, name: name)
    return try self.bus.answer(to: method)?.reader.texts() ?? []
  }

  /// Backends, those that run first.
  func backendNames() throws(CommandFailure) -> [String] {
    var found: [String] = []
    for name in try names(owned: true).inOrder(by: <) + names(owned: false).inOrder(by: <)
    where name.hasPrefix(Self.backends) && !found.contains(name) {
      found.append(name)
    }
    return found
  }

  /// Part of a path on the bus that nobody has used yet.
  func newToken() -> String {
    count += 1
    return "insula\(ProcessID.own)_\(count)"
  }

  // MARK: Asking

  var events: FD? { bus.fd }
  func look() throws(CommandFailure) { _ = try bus.process() }

  func begin(_ question: AgentQuestion) {
    self.question = question
    isRefused = false
  }

  func answer(_ watch: TaskWatch) throws(CommandFailure) -> AgentAnswer? {
    guard let question, !isRefused else { return .dismiss }
    switch question.kind {
    case .consent(let service, let text): return try askConsent(question, service, text, watch)
    case .panel(let request):
      guard let path = try choose(question, request, watch) else { return nil }
      return path.isEmpty ? .dismiss : chosen(path, request, question)
    }
  }

  /// What a person has chosen must be in the tree; what is not is nobody's answer.
  private func chosen(_ path: String, _ request: PanelRequest, _ question: AgentQuestion) -> AgentAnswer {
    guard let tree else {
      tell("the tree can't be reached", question)
      return .dismiss
    }
    do throws(PanelTree.Refusal) {
      // That it is replaced, the portal has asked.
      let chosen = try tree.choose(path, at: path, request, replacing: true)
      choice = chosen
      return .chosen(path: chosen.path, inode: chosen.inode)
    } catch {
      if case .sentence(let sentence) = error { tell(sentence, question) }
      return .dismiss
    }
  }

  /// Waits until something has happened; false if no answer is wanted any more.
  func wait(_ watch: TaskWatch, until isOver: () -> Bool) throws(CommandFailure) -> Bool {
    while !isOver() {
      switch try bus.wait(also: watch.fd, milliseconds: TaskWatch.interval) {
      case .bus: break
      case .other: return false
      case .timeIsOver: if watch.isDecided() { return false }
      }
    }
    return true
  }

  func end(_ outcome: TerminalDialog.Outcome, of answer: AgentAnswer) -> Bool {
    defer { choice = nil }
    guard let question, outcome != .taken else { return true }
    if let choice { tree?.undo(choice) }
    switch outcome {
    case .taken, .tooLate: return true
    case .refused(let why):
      tell(why, question)
      isRefused = true
      return answer == .dismiss
    }
  }

  func takeBack() {
    guard let method = closing else { return }
    closing = nil
    // What becomes of that, nobody has to know.
    _ = try? bus.answer(to: method)
  }

  /// Tells what the person could not be asked, or has chosen in vain.
  func tell(_ why: String, _ question: AgentQuestion) {
    console.note("agent: \(question.sentence) \(why.sanitized) ('\(question.command)' settles it)")
  }
}

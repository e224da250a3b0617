// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// What a person is asked, in words that fit on a screen whoever wrote them.
///
/// Strangers chose the app's name, its team's, and its text. What would control a terminal is no part of them
/// here, nor what is too long to read.
struct AgentQuestion: Codable, Equatable, Sendable {
  enum Kind: Codable, Equatable, Sendable {
    /// The app's own words, if it has any.
    case consent(PrivacyService, text: String?)
    case panel(PanelRequest)
  }

  /// The daemon's, for the answer.
  let number: Int64
  let name: String
  let identifier: String
  let team: String
  let kind: Kind

  /// Nil for what no person is asked.
  init?(_ task: AgentTask) {
    number = task.number
    let name = task.app.name.brief(64)
    identifier = task.app.identifier.brief(255)
    self.name = name.isEmpty ? identifier : name
    team = task.app.team.brief(64)
    switch task.question {
    case .consent(let service, let text):
      kind = .consent(service, text: text.map { $0.brief(600) }.flatMap { $0.isEmpty ? nil : $0 })
    case .panel(let panel):
      // A name that had to be changed is nobody's wish.
      let name = panel.name.flatMap { $0.utf8.count <= 255 && $0.sanitized == $0 ? $0 : nil }
      kind = .panel(
        PanelRequest(panel.kind, name: name, types: panel.types.prefix(64).map { $0.brief(128) }))
    case .read, .add: return nil
    }
  }

  /// Who asks: what a person can tell one app from another by.
  var signer: String { team.isEmpty ? identifier : "\(identifier), signed by team \(team)" }

  /// What it is about, as a sentence.
  var sentence: String {
    switch kind {
    case .consent(let service, _): "\"\(name)\" wants to \(service.use)."
    case .panel(let panel):
      switch panel.kind {
      case .file: "\"\(name)\" asks you for a file."
      case .folder: "\"\(name)\" asks you for a folder."
      case .save: "\"\(name)\" asks you where to save a file."
      }
    }
  }

  /// What settles it without an agent.
  var command: String {
    switch kind {
    case .consent(let service, _): "insula consent allow \(identifier) \(service.rawValue)"
    case .panel: "insula grant \(identifier) PATH"
    }
  }
}

extension String {
  /// The beginning of the text as it may be shown in quotes within a line: blanks are single, and none of its
  /// quotes is ours.
  func brief(_ limit: Int) -> String {
    var text = UnicodeScalarView()
    var count = 0
    var isBlank = true
    // Not all of it, which may be long.
    for scalar in unicodeScalars.prefix(4 * limit) {
      if scalar.properties.isWhitespace {
        if !isBlank { text.append(" ") }
        isBlank = true
      } else {
        text.append(!scalar.isPrintable ? "?" : scalar == "\"" ? "'" : scalar)
        isBlank = false
      }
      count = text.count
      if count >= limit { break }
    }
    while text.last == " " { text.removeLast() }
    let isWhole = count < limit && unicodeScalars.dropFirst(4 * limit).isEmpty
    return String(text) + (isWhole ? "" : "...")
  }
}

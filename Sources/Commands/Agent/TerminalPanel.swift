// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// The choice of a file at a terminal, line by line.
struct TerminalPanel {
  private let request: PanelRequest
  private let tree: PanelTree
  /// What is in the way of a file to be saved, and may be replaced.
  private var replaced: String?
  private var choice: PanelTree.Choice?
  /// What a person is told about their last line.
  private(set) var said: String?

  init(_ request: PanelRequest, in tree: PanelTree) {
    self.request = request
    self.tree = tree
  }

  var prompt: String {
    if replaced != nil { return "Replace it? [y/n] " }
    switch request.kind {
    case .file: return "File: "
    case .folder: return "Folder: "
    case .save: return "Save as: "
    }
  }

  /// What stands in the line at first.
  var beginning: String? { request.kind == .save ? request.name : nil }

  var help: String {
    let extensions =
      request.kind == .folder || FileType.areAll(request.types) ? [] : FileType.extensions(of: request.types)
    let types = extensions.isEmpty ? "" : " It takes .\(extensions.joined(separator: ", ."))."
    return "Paths begin in your home, or with '/' at \(tree.root). Tab completes them; an empty line cancels."
      + types
  }

  func complete(_ typed: String) -> PanelTree.Completion? {
    replaced == nil ? tree.complete(typed, request) : nil
  }

  /// The answer that a line is; nil if it is none.
  mutating func take(_ line: String) -> AgentAnswer? {
    said = nil
    var path = line
    var isReplacing = false
    if let replaced {
      self.replaced = nil
      isReplacing = true
      guard ["y", "yes"].contains(line.lowercased()) else { return nil }
      path = replaced
    } else if line.isEmpty {
      return .dismiss
    }
    do throws(PanelTree.Refusal) {
      let chosen = try tree.choose(path, request, replacing: isReplacing)
      choice = chosen
      return .chosen(path: chosen.path, inode: chosen.inode)
    } catch {
      switch error {
      case .sentence(let sentence): said = sentence
      case .isThere(let name):
        said = "'\(name.sanitized)' is there already."
        replaced = path
      }
      return nil
    }
  }

  /// The app does not get what was chosen.
  mutating func undo() {
    if let choice { tree.undo(choice) }
    choice = nil
  }
}

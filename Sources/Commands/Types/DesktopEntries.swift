// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What a desktop finds the apps of a store by, in the user's own directory of data: an entry for each app,
/// and MIME types for what apps open that the machine has none for.
///
/// Each MIME type is in the entry of the app that comes first for it, so that a desktop comes to the same app
/// as `insula open`.
struct DesktopEntries {
  private static let prefix = "insula-"
  /// What our entries have and no other.
  private static let mark = "X-Insula-App="
  private static let types = "insula.xml"

  /// Where the entries are.
  let place: String
  private let data: String
  private let known: KnownDocuments
  private let command: String
  private let context: Context

  init(_ known: KnownDocuments, _ access: any StoreAccess, _ context: Context) {
    self.known = known
    self.context = context
    data = Self.dataHome(context)
    place = data + "/applications"
    let program = realPath("/proc/self/exe") ?? "insula"
    command = [program, "open", "--store", access.storePath].map(\.inDesktopExec).joined(separator: " ")
  }

  private static func dataHome(_ context: Context) -> String {
    if let place = context.environment["XDG_DATA_HOME"], place.begins(with: "/") { return place }
    return context.home + "/.local/share"
  }

  /// Brings up to date what has been written before, if it has: a failure is told, and no reason to fail.
  ///
  /// In another user's directory nothing is brought up to date.
  static func refresh(_ access: any StoreAccess, _ context: Context) {
    guard let packages = try? context.openOwn(dataHome(context) + "/mime/packages"),
      (try? packages.fd.status(of: types)) != nil
    else { return }
    do {
      try DesktopEntries(KnownDocuments(try access.documents(for: nil)), access, context).write()
    } catch {
      context.console.note("the desktop's entries are not up to date: \(CommandFailure(error).message)")
    }
  }

  /// Writes all that there is to be, and removes what was of apps that have gone.
  func write() throws {
    let packages = try context.openOwn(data + "/mime/packages", making: true)
    let applications = try context.openOwn(place, making: true)
    // The programs that are run below write there too.
    _ = try context.openOwn(data + "/mime")
    let handled = DesktopTypes(known)
    if handled.isCut {
      context.console.note(
        "apps open more types than a desktop is told of (\(DesktopTypes.limitOfApp) of one app, "
          + "\(DesktopTypes.limitOfAll) of all); 'insula handlers' shows all of them")
    }
    try replace(Self.types, in: packages.fd, data + "/mime/packages", with: xml(handled.unregistered))
    var names: Set<String> = []
    for (app, mimeTypes) in zip(known.apps, handled.mimeTypes) {
      let name = "\(Self.prefix)\(app.identifier).desktop"
      names.insert(name)
      try replace(name, in: applications.fd, place, with: entry(app, mimeTypes))
    }
    removeOthers(than: names, in: applications.fd)
    register(with: "update-mime-database", data + "/mime", package: "shared-mime-info")
    register(with: "update-desktop-database", place, package: "desktop-file-utils")
  }

  /// Has a program of the desktop's read what was written.
  private func register(with program: String, _ directory: String, package: String) {
    let ended = try? Subprocess.run("/usr/bin/\(program)", [program, directory], context)
    guard ended?.end != .exited(0) else { return }
    context.console.note(
      "\(program) could not be run, so the desktop may not know of the new entries; "
        + "it is in the package \(package)")
  }

  // MARK: What there is to be

  private func entry(_ app: AppDocuments, _ mimeTypes: Set<String>) -> String {
    let name = app.name.sanitized.beginning(100)
    var lines = [
      "[Desktop Entry]", "Type=Application", "Version=1.0", "Name=\(name.inDesktopValue)",
      "Exec=\(command) --with \(AppReference.word(of: app.identifier)) -- %F", "Terminal=false",
      Self.mark + app.identifier,
    ]
    if !mimeTypes.isEmpty { lines.append("MimeType=\(mimeTypes.inOrder(by: <).joined(separator: ";"));") }
    return lines.joined(separator: "\n") + "\n"
  }

  private func xml(_ types: [DesktopTypes.Unregistered]) -> String {
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<mime-info xmlns=\"http://www.freedesktop.org/standards/shared-mime-info\">",
    ]
    for type in types {
      let kind = type.kind.sanitized.inXML
      lines.append("  <mime-type type=\"\(type.mimeType.inXML)\"><comment>\(kind)</comment>")
      lines += type.parent.map { ["    <sub-class-of type=\"\($0.inXML)\"/>"] } ?? []
      lines += type.extensions.map { "    <glob pattern=\"*.\($0.inXML)\"/>" }
      lines.append("  </mime-type>")
    }
    return (lines + ["</mime-info>"]).joined(separator: "\n") + "\n"
  }

  // MARK: Files

  private func replace(_ name: String, in directory: FD, _ path: String, with text: String) throws {
    do throws(Errno) { try directory.replaceContents(of: name, with: text.utf8, mode: 0o644) } catch {
      throw CommandFailure(error, "can't write \(path.sanitized)/\(name): \(error.message)")
    }
  }

  private func removeOthers(than names: Set<String>, in directory: FD) {
    for entry in (try? directory.entries()) ?? [] {
      let name = String(decoding: entry.name, as: UTF8.self)
      guard name.hasPrefix(Self.prefix), name.hasSuffix(".desktop"), !names.contains(name),
        let bytes = try? directory.contents(of: name, limit: 1 << 16),
        String(decoding: bytes, as: UTF8.self).parts(between: "\n").contains(where: {
          $0.hasPrefix(Self.mark)
        })
      else { continue }
      _ = try? name.withName { (name) throws(Errno) in try directory.remove(name, directory: false) }
    }
  }
}

// Scalar by scalar: a letter with marks on it is a letter of its own to Swift, and to nobody who reads these.

extension String {
  private func replacing(_ replacement: (Unicode.Scalar) -> String?) -> String {
    var text = ""
    for scalar in unicodeScalars {
      if let other = replacement(scalar) { text += other } else { text.unicodeScalars.append(scalar) }
    }
    return text
  }

  /// As a value of a desktop entry.
  fileprivate var inDesktopValue: String {
    let escaped = replacing { $0 == "\\" ? "\\\\" : nil }
    return unicodeScalars.first == " " ? "\\s" + escaped.unicodeScalars.dropFirst().text : escaped
  }

  /// As an argument in the value of `Exec`: quoted where it must be, and that as a value.
  ///
  /// `xdg-open` knows nothing of quotes, so a plain word has none.
  fileprivate var inDesktopExec: String {
    if unicodeScalars.allSatisfy({
      $0.properties.isAlphabetic || "0123456789/._+:,@=-".unicodeScalars.contains($0)
    }) {
      return self
    }
    let quoted = replacing { scalar in
      "\"`$\\".unicodeScalars.contains(scalar) ? "\\\(scalar)" : scalar == "%" ? "%%" : nil
    }
    return "\"\(quoted)\"".inDesktopValue
  }

  fileprivate var inXML: String {
    replacing { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      default: nil
      }
    }
  }
}

extension Substring.UnicodeScalarView {
  fileprivate var text: String { String(Substring(self)) }
}

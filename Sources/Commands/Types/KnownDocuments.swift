// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Apps
internal import Daemon
internal import Policy
internal import Store

/// The types of a user's files, and the apps that open them.
struct KnownDocuments {
  let table: TypeTable
  let apps: [AppDocuments]
  private let declarations: [AppDeclarations]
  private let found: Openers
  /// By type.
  let choices: [DocumentsPage.Choice]

  /// An app that opens documents of a type.
  struct Opener: Encodable {
    let identifier: String
    let name: String
    /// `Chosen` by the user, or what the app says of itself.
    let rank: String
    /// Whether it wants the documents themselves, not copies.
    let opensInPlace: Bool
  }

  /// With no page: what is known where there are no apps.
  init(_ page: DocumentsPage? = nil) {
    apps = page?.apps ?? []
    choices = page?.choices ?? []
    declarations = apps.map { AppDeclarations(text: $0.declarations) }
    let machine = TypeTable.base.with(.ofMachine())
    table = apps.isEmpty ? machine : machine.adding(TypeLayer(declarations, over: machine))
    found = Openers(declarations, in: table)
  }

  /// What is known in a store, or without one.
  ///
  /// An app is not told which other apps there are. Who names no store is told of the base system at least.
  static func find(_ store: String?, _ context: Context) throws -> KnownDocuments {
    if context.appSocket != nil { return KnownDocuments() }
    do {
      return KnownDocuments(try AppsAccess.find(store, context).documents(for: nil))
    } catch  where store == nil {
      if (error as? StoreError)?.kind != .noStore {
        context.console.inform("what apps declare is not known: \(CommandFailure(error).message)")
      }
      return KnownDocuments()
    }
  }

  /// Those that open documents of a type, the first choice first.
  func openers(of type: DeclaredType, nameExtension: String? = nil) -> [Opener] {
    var openers = found.of(type, nameExtension: nameExtension).map { opener($0.app, rank: $0.rank.rawValue) }
    let choice = choices.first { $0.type.lowercased() == type.identifier.lowercased() }
    let chosen = choice.flatMap { index(of: $0.identifier) }
    if let chosen {
      openers.removeAll { $0.identifier == apps[chosen].identifier }
      openers.insert(opener(chosen, rank: "Chosen"), at: 0)
    }
    return openers
  }

  /// An app by its identifier, whatever it says that it opens.
  func opener(_ identifier: AppIdentifier) -> Opener? {
    index(of: identifier.text).map { opener($0, rank: HandlerRank.none.rawValue) }
  }

  private func index(of identifier: String) -> Int? {
    apps.firstIndex { $0.identifier.lowercased() == identifier.lowercased() }
  }

  private func opener(_ index: Int, rank: String) -> Opener {
    Opener(
      identifier: apps[index].identifier, name: apps[index].name, rank: rank,
      opensInPlace: declarations[index].opensInPlace)
  }

  /// The types of files of extensions that apps claim and nobody has declared.
  var claimedAlone: [DeclaredType] {
    let all = Set(
      declarations.flatMap(\.claims).filter { $0.types.isEmpty && !$0.isPackage }.flatMap(\.extensions))
    return all.filter { $0 != "*" && table.type(forExtension: $0, isFolder: false) == nil }.inOrder(by: <)
      .filter { table.registeredMIMEType(forExtension: $0) == nil }.map { table.type(of: "x.\($0)", .file) }
  }

  /// The apps that export or import a type.
  func declarers(of identifier: String) -> [String] {
    let key = identifier.lowercased()
    return zip(apps, declarations).filter { _, declared in
      (declared.exported + declared.imported).contains { $0.identifier.lowercased() == key }
    }.map(\.0.identifier)
  }

  /// The type that a person means by an identifier, or by an extension (`.md`).
  func type(named text: String) throws(CommandFailure) -> DeclaredType {
    if text.hasPrefix("."), let name = NameExtension.declared(text) {
      let isFolder = table.type(forExtension: name, isFolder: false) == nil && table.isPackage("x.\(name)")
      return table.type(of: "x.\(name)", isFolder ? .folder : .file)
    }
    if let found = table.type(named: text) { return found }
    throw CommandFailure(
      .failed,
      "there is no type '\(text.sanitized)'" + Suggestion.text(for: text, among: table.all.map(\.identifier))
        + "; 'insula types' lists all, and 'insula type FILE' says which one a file has")
  }
}

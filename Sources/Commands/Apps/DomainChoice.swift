// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// For whom a verb changes an app: an option says so, or there is only one who can be meant.
struct DomainChoice {
  static func options(_ defaultWords: String) -> [CommandDescription.Option] {
    [
      .init(
        name: "user", short: "u", value: "NAME",
        help: "only for this user, in the user's home\(defaultWords)",
        kind: .account),
      .init(name: "everyone", help: "for everyone, in /Applications; this requires an administrator"),
    ]
  }

  private let user: String?
  private let isForEveryone: Bool

  init(_ arguments: ParsedArguments, of verb: CommandDescription) throws(UsageError) {
    user = arguments.value("user")
    isForEveryone = arguments.has("everyone")
    if user != nil, isForEveryone {
      throw verb.error("'--user' and '--everyone' can't be combined; choose for whom the app is meant")
    }
  }

  /// Where nobody says it.
  init() { (user, isForEveryone) = (nil, false) }

  /// What an option says.
  private var explicit: AppDomain? {
    user.map(AppDomain.user) ?? (isForEveryone ? .everyone : nil)
  }

  /// All that are installed under an identifier.
  private func all(_ identifier: AppIdentifier, _ access: any StoreAccess) throws -> [AppDescription] {
    try access.apps(for: nil).filter { $0.identifier.lowercased() == identifier.text.lowercased() }
  }

  /// Where everyone's of these is; in /Applications if there is none.
  private func everyones(_ apps: [AppDescription]) -> AppDomain {
    apps.first { $0.home == nil }.map { AppDomain(of: $0) } ?? .everyone
  }

  /// For whom a new app is: for everyone if the caller may do that, otherwise for the caller alone.
  func forNewApp(_ access: any StoreAccess) throws -> AppDomain {
    if let explicit { return explicit }
    let context = access.context
    if context.isRoot || mayChangeApplications(access) { return .everyone }
    do {
      return .user(try access.home(of: context.uid).splitAtName.name)
    } catch StoreError.noHome {
      throw CommandFailure(
        .notPermitted,
        "you may not change /Applications, and you have no home in this store; ask an administrator to "
          + "install the app, or root to make your home with 'insula user add'")
    }
  }

  /// Whose app is meant: one's own comes before everyone's.
  ///
  /// Root has none of its own. `isStrict` is for what can't be taken back: root must say who is meant, if
  /// several can be.
  func forInstalled(
    _ identifier: AppIdentifier, _ access: any StoreAccess, isStrict: Bool
  ) throws -> AppDomain {
    if let explicit { return explicit == .everyone ? everyones(try all(identifier, access)) : explicit }
    guard access.context.isRoot else {
      do {
        return AppDomain(of: try access.app(identifier, for: nil))
      } catch StoreError.noApp {
        return try forNewApp(access)
      }
    }
    let all = try all(identifier, access)
    if let only = all.first, all.count == 1 { return AppDomain(of: only) }
    let homes = all.compactMap(\.home)
    guard isStrict || homes.count == all.count, !all.isEmpty else {
      if !homes.isEmpty {
        access.context.console.note(
          homes.inOrder(by: <).joined(separator: ", ")
            + ": these users have the app for themselves too, and that "
            + "stays as it is; '--user' names one of them")
      }
      return everyones(all)
    }
    throw CommandFailure(
      .usage, "\(identifier) is installed more than once; say which one is meant:",
      lines: all.map { $0.home.map { "  --user \($0)" } ?? "  --everyone" })
  }

  /// Whether an app is among all that are meant: everyone's if the caller may change those, and one's own.
  func includes(_ app: AppDescription, _ access: any StoreAccess) -> Bool {
    if let explicit { return AppDomain(home: app.home) == explicit }
    if access.context.isRoot { return app.home == nil }
    return app.home != nil || mayChangeApplications(access)
  }

  /// Whether the kernel would let the caller put an app into everyone's Applications.
  private func mayChangeApplications(_ access: any StoreAccess) -> Bool {
    let path = "\(access.root)/\(AppDomain.everyone.path)"
    do throws(Errno) {
      try FD.cwd.checkAccess(path, [.write, .search])
      return true
    } catch {
      // Where it can't be seen from here, the daemon judges.
      return error != .EACCES && error != .EPERM
    }
  }
}

extension AppDomain {
  /// Where an app is.
  init(of app: AppDescription) {
    self = app.home.map(AppDomain.user) ?? AppDomain(ofEveryones: app.path)
  }

  /// Of a home that was named, or of everyone.
  init(home: String?) { self = home.map(AppDomain.user) ?? .everyone }

  /// What is said where nobody has said for whom.
  func words(_ context: Context) -> String {
    guard case .user(let name) = self else { return "for everyone" }
    let isOwn = Account.numbered(context.uid)?.name.hasSameBytes(as: name) == true
    return isOwn ? "for yourself" : "for \(name.sanitized)"
  }
}

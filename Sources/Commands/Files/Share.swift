// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula share`.
struct ShareCommand: Command {
  private static let places = ["Public", "Sites", "Files"]
  static let description = CommandDescription(
    name: "share", summary: "Prints what to add to a file server's configuration to share a folder.",
    arguments: [
      .init(
        name: "Public|Sites|Files",
        help: "your Public or Sites folder, or what the files view shows: your folders and apps' Documents",
        isRequired: true, kind: .word(places))
    ],
    options: [
      .init(name: "samba", help: "for smb.conf"),
      .init(name: "sftp", help: "for sshd_config"),
      .init(
        name: "as", value: "ACCOUNT", help: "with '--sftp': who logs in, and can do nothing else then",
        kind: .account),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      """
      Nothing is changed: an administrator writes the output to a file and includes it, with samba by
      'include = FILE' in smb.conf, with sshd in /etc/ssh/sshd_config.d. Insula judges who comes through the
      server like anybody else: by permissions, ACLs and flags. Sites is shared read-only; Files for its owner
      alone.
      """
    ],
    examples: [
      "insula share Public --samba", "insula share Sites --sftp --as guest",
      "insula share Files --samba > files.conf",
    ])

  private enum Server { case samba, sftp(account: String) }

  private let place: String
  private let server: Server
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let word = arguments.argument(0) ?? ""
    guard let place = Self.places.first(where: { $0.lowercased() == word.lowercased() }) else {
      throw Self.description.error(
        "'\(word)' is not shared; choose \(Self.places.dropLast().joined(separator: ", ")) or Files")
    }
    self.place = place
    user = arguments.value("user")
    store = arguments.value("store")
    let account = arguments.value("as")
    switch (arguments.has("samba"), arguments.has("sftp")) {
    case (true, false):
      guard account == nil else { throw Self.description.error("'--as' is for '--sftp'") }
      server = .samba
    case (false, true):
      guard let account else {
        throw Self.description.error(
          "say by '--as ACCOUNT' who logs in; that account can do nothing else then")
      }
      server = .sftp(account: account)
    default: throw Self.description.error("say for which server: '--samba' or '--sftp'")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, context)
    let user = try AppsAccess.user(user, context) ?? context.uid
    let root = access.root
    let home = try access.home(of: user)
    guard let owner = Account.numbered(user)?.name else {
      throw CommandFailure(.failed, "there is no account of uid \(user), so nobody could log in")
    }
    let top = try FD.cwd.openFollowing(root, O_RDONLY | O_DIRECTORY)
    let isMachines = try top.fd.status().st_uid == 0
    switch server {
    case .samba:
      let shared =
        place == "Files"
        ? try files(access, user, home: home)
        : [(name: place, path: "\(root)/\(home)/\(place)")]
      try showSamba(shared, of: owner, forOwnerAlone: place == "Files" || !isMachines, context)
    case .sftp(let account):
      guard isMachines || account == owner else {
        throw CommandFailure(
          .failed, "nobody but \(owner) gets to this store; share it as \(owner), or use the machine's store")
      }
      guard place != "Files" || account == owner else {
        throw CommandFailure(.failed, "Files are for \(owner) alone: '--as \(owner)'")
      }
      let path = place == "Files" ? "/\(home)" : "/\(home)/\(place)"
      try showSFTP(path, in: root, as: account, isMachines, context)
    }
    return .ok
  }

  /// What the files view shows, by its names.
  private func files(
    _ access: any StoreAccess, _ user: UInt32, home: String
  ) throws -> [(name: String, path: String)] {
    var view = FinderView(Languages(environment: access.context.environment), access.context)
    func shown(_ path: String) throws -> FinderView.Shown {
      let object = try FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY)
      return view.look(at: object.fd, called: Array(path.splitAtName.name.utf8), try object.fd.status())
    }
    let apps = SharedDocuments.shared(by: try access.documents(for: user).apps, home: home) { app in
      (try? shown("\(access.root)/\(app.path)").name) ?? app.name
    }
    let directory = try FD.cwd.openFollowing("\(access.root)/\(home)", O_RDONLY | O_DIRECTORY)
    let folders = try directory.fd.entries { _, type in type == UInt8(DT_DIR) }.map {
      String(decoding: $0.name, as: UTF8.self)
    }.filter { try !shown("\(access.root)/\(home)/\($0)").isHidden }
    return FilesPlaces(home: home, folders: folders, apps: apps, clouds: []).top.map { place in
      let path = String(decoding: GrantPath.path(place.path), as: UTF8.self)
      return (String(decoding: place.name, as: UTF8.self), "\(access.root)/\(path)")
    }
  }

  // MARK: Fragments

  private func showSamba(
    _ shared: [(name: String, path: String)], of owner: String, forOwnerAlone isPrivate: Bool,
    _ context: Context
  ) throws(CommandFailure) {
    try Self.check(owner, hasNone: "%\\\"[] ,", "samba")
    context.console.print("# For smb.conf: include = FILE. Insula decides who may do what.")
    for share in shared {
      for text in [share.name, share.path] {
        try Self.check(text, hasNone: "%\\\"[]", "samba")
      }
      // No account has a blank in its name, so no share of another one has this name, nor has one of the
      // server's own: global, homes, print$.
      let name = place == "Files" ? "\(owner) Files \(share.name)" : "\(owner) \(share.name)"
      let lines = [
        "", "[\(name)]", "   path = \(share.path)", "   read only = \(place == "Sites" ? "yes" : "no")",
        "   guest ok = no", "   follow symlinks = no", "   wide links = no", "   ea support = yes",
      ]
      context.console.print(lines: lines)
      if isPrivate { context.console.print("   valid users = \(owner)") }
    }
  }

  private func showSFTP(
    _ path: String, in root: String, as account: String, _ isMachines: Bool, _ context: Context
  ) throws(CommandFailure) {
    let start = isMachines ? path : root + path
    for text in [start, root, account] { try Self.check(text, hasNone: "%\\\"*?!, ", "sshd") }
    let lines = [
      "# For /etc/ssh/sshd_config.d: \(account) can do nothing else by SSH. Insula decides who may do what.",
      "Match User \(account)", "    ChrootDirectory \(isMachines ? root : "none")",
      "    ForceCommand internal-sftp\(place == "Sites" ? " -R" : "") -d \(start)",
    ]
    let off = ["AllowTcpForwarding", "AllowStreamLocalForwarding", "PermitTunnel", "X11Forwarding"]
    context.console.print(lines: lines + (off + ["AllowAgentForwarding"]).map { "    \($0) no" })
  }

  /// Nothing in a name may be a word of the server's configuration.
  private static func check(
    _ text: String, hasNone special: String, _ server: String
  ) throws(CommandFailure) {
    guard text == text.sanitized, text.utf8.last != UInt8(ascii: " "),
      !text.utf8.contains(where: special.utf8.contains)
    else {
      throw CommandFailure(
        .failed,
        "\(text.sanitized) can't be shared: it has a character that means something to \(server); rename it, "
          + "or mount the store elsewhere")
    }
  }
}

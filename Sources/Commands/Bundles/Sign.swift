// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import PropertyLists

/// `insula sign`.
struct SignCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "sign", summary: "Signs a bundle, and first the bundles nested in it.",
    arguments: [
      .init(name: "BUNDLE", help: "a directory such as Note.app", isRequired: true, kind: .directory)
    ],
    options: [
      identityOption,
      .init(
        name: "entitlements", value: "FILE",
        help: "a property list of entitlements (default: those of the previous signature)", kind: .file),
      .init(name: "force", help: "sign a bundle that is already signed"),
    ],
    details: [
      """
      Nested bundles are signed again too, with the entitlements that they have. If 'insula verify' would
      reject the result, the bundle is not signed, and the exit code is the one that 'insula verify' has for
      the finding. A new signature replaces the old one in one step.
      """,
      "Documentation/SIGNING.md describes the files of a signature, and how to sign with openssl.",
    ],
    examples: [
      "insula sign Note.app --identity Anna --entitlements Note.entitlements", "insula sign --force Note.app",
    ])

  static let identityOption = CommandDescription.Option(
    name: "identity", value: "NAME",
    help: "the identity to sign with (default: the one in insula.conf, else your only one)",
    kind: .identity)

  private let path: String
  private let identity: String?
  private let entitlements: String?
  private let force: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    identity = arguments.value("identity")
    entitlements = arguments.value("entitlements")
    force = arguments.has("force")
  }

  func run(in context: Context) throws -> ExitCode {
    let identity = try Self.identity(named: identity, in: context)
    let given = try entitlements.map { try context.contents(of: $0, limit: PropertyList.sizeLimit) }
    let named = NamedBundle(path, context)
    do {
      // What is printed while a line shows how far it is would stand behind that.
      let (identifier, isKept) = try named.open("signing", toChange: true) { bundle in
        guard try force || bundle.signaturePart(SealLayout.codeSignature) == nil else {
          throw CommandFailure(
            .failed, "\(path.sanitized) is already signed; nothing was changed; '--force' signs it again")
        }
        let kept = try given ?? bundle.signaturePart(SealLayout.codeEntitlements)
        try bundle.sign(as: identity, entitlements: kept, at: context.now())
        return (bundle.info.identifier, given == nil && kept != nil)
      }
      context.console.say(
        "Signed \(path.sanitized) (\(identifier)) as '\(identity.leaf.name)' of the team \(identity.team).")
      if isKept { context.console.say("Its entitlements were kept.") }
      return .ok
    } catch let finding as Bundles.Finding {
      return named.tell([finding], all: true)
    } catch let failure as SigningFailure {
      switch failure {
      case .refused(let findings): return named.tell(findings, all: true)
      case .notValidNow, .crypto: throw CommandFailure(.failed, failure.description)
      case .notWritten(_, let errno): throw CommandFailure(errno, failure.description.sanitized)
      }
    }
  }

  /// Who signs: whoever is named, or the only identity that there is.
  static func identity(named name: String?, in context: Context) throws -> Identity {
    guard let place = try context.openIdentities() else { throw noIdentity }
    let identities = IdentityDirectory(place.fd)
    return try identities.identity(named: name ?? context.value(.identity) ?? onlyOne(in: identities))
  }

  private static let noIdentity = CommandFailure(
    .failed, "there is no identity to sign with; 'insula identity new NAME' creates one")

  private static func onlyOne(in identities: IdentityDirectory) throws -> String {
    let all = try identities.list()
    guard let first = all.first else { throw noIdentity }
    guard all.count == 1 else {
      throw description.error(
        "there are several identities; choose one with '--identity': "
          + all.map(\.name).joined(separator: ", ")
      )
    }
    return first.name
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula pack`.
struct PackCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "pack", summary: "Writes a signed bundle as one file, which can be installed.",
    arguments: [
      .init(name: "BUNDLE", help: "a signed bundle such as Note.app", isRequired: true, kind: .directory)
    ],
    options: [
      .init(
        name: "output", short: "o", value: "FILE",
        help: "the file to create, which must not exist (default: the bundle's name with .tar, here)",
        kind: .file)
    ],
    details: [
      """
      The file is an ordinary tar archive, not compressed, with the signature in it; 'tar -xf' unpacks it. The
      same bundle always gives the same bytes: all times are that of the signature, and owners and extended
      attributes are left out. A bundle that 'insula verify' would reject is not packed.
      """,
      "'insula install FILE' and 'insula update FILE' verify what they unpack as they verify a directory.",
    ],
    examples: ["insula pack Note.app", "insula pack Note.app -o Note-1.2.tar"])

  private let path: String
  private let output: String?

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    output = arguments.value("output")
  }

  func run(in context: Context) throws -> ExitCode {
    let trust = try context.trust(ofStore: nil)
    let named = NamedBundle(path, context)
    let name = context.name(of: path)
    let target = output ?? name + ".tar"
    var findings: [Bundles.Finding] = []
    do {
      try named.open("packing") { bundle in
        let verification = bundle.verify(trust, at: context.now(), includingStrangers: false)
        guard verification.isGood, let signer = verification.signer else {
          findings = verification.findings
          return
        }
        try context.write(toNew: target, mode: 0o644) { file in
          try ArchivePacker.pack(
            bundle.root, named: name, at: signer.signingTime ?? 0, to: file, progress: bundle.progress)
        }
      }
    } catch let finding as Bundles.Finding {
      findings = [finding]
    } catch let failure as ArchiveFailure {
      throw CommandFailure(.failed, "can't pack \(path): \(failure)".sanitized)
    }
    guard findings.isEmpty else {
      let code = named.tell(findings, all: false)
      context.console.note("\(path.sanitized) was not packed: 'insula verify' must accept it first")
      return code
    }
    context.console.say("Packed \(path.sanitized) as \(target.sanitized).")
    return .ok
  }
}

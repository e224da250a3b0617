// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO

/// `insula verify`.
struct VerifyCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "verify",
    summary: "Checks whether bundles are, file for file, what a trusted identity has signed.",
    arguments: [
      .init(
        name: "BUNDLE", help: "a directory such as Note.app, mounted or not", isRequired: true,
        kind: .directory,
        isRepeated: true)
    ],
    options: [
      .init(name: "all", help: "print all findings, not only the first"),
      .init(
        name: "store", value: "STORE", help: "use the store's trusted roots instead of your own",
        kind: .directory),
      CommandDescription.json,
    ],
    details: [
      """
      Nothing is changed, and symbolic links are not followed. The first finding is printed, with the first
      bad file. It determines the exit code; of several bundles, the first bad one does. '--json' prints all
      findings of all bundles.
      """,
      BundleProblem.helpTable(),
    ],
    examples: [
      "insula verify Note.app", "insula verify --all --store /var/lib/insula /insula/Applications/*.app",
    ],
    storeUse: .looks)

  private let paths: [String]
  private let store: String?
  private let all: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    paths = arguments.positional
    store = arguments.value("store")
    all = arguments.has("all")
    json = arguments.has("json")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    let trust = try context.trust(ofStore: store)
    var codes: [ExitCode] = []
    var reports: [VerificationReport] = []
    for path in paths {
      let named = NamedBundle(path, context)
      let report: VerificationReport
      do {
        report = try named.open("verifying") { bundle in
          VerificationReport(path, bundle, bundle.verify(trust, at: context.now(), includingStrangers: true))
        }
      } catch let finding as Bundles.Finding {
        report = VerificationReport(path, finding)
      } catch let failure as CommandFailure {
        // The others are looked at all the same.
        context.console.note(failure)
        codes.append(failure.code)
        continue
      }
      codes.append(report.code)
      if json { reports.append(report) } else { tell(report, named, trust, context.console) }
    }
    if json { context.console.print(json: reports) }
    return codes.first { $0 != .ok } ?? .ok
  }

  private func tell(_ report: VerificationReport, _ named: NamedBundle, _ trust: Trust, _ console: Console) {
    guard !report.good else { return console.print(report.sentence) }
    _ = named.tell(report.all, all: all)
    if report.all.first?.kind == .untrusted, trust.roots.isEmpty {
      let place = store.map { " --store \($0.forShell)" } ?? ""
      console.note("there are no trusted roots yet; 'insula trust add FILE\(place)' adds one")
    }
  }
}

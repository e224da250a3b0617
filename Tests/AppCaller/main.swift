// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc
import InsulaApp

// A Swift program that runs as an app, and asks Insula all that its library can ask, a line for each answer.

func tell(_ name: String, _ answer: () throws -> String) {
  do {
    print(name, try answer())
  } catch let failure as InsulaApp.Failure {
    print(name, "failed", failure.code, failure.description)
  } catch {
    print(name, "failed", error)
  }
}

guard let app = InsulaApp() else {
  print("no app")
  exit(0)
}
tell("information") {
  let own = try app.information()
  return [own.identifier, own.name, own.team, own.bundle, own.home, own.userHome, "\(own.user)"]
    .joined(separator: " ") + " \(own.groups) \(own.clouds)"
}
tell("path") { try app.path("documents") }
tell("grants") {
  let grants = try app.grants()
  let words = grants.all.map { "\($0.path) \($0.isWritable) \($0.isDirectory)" }
  try app.awaitGrants(otherThan: grants.version)
  return words.joined(separator: ", ") + " at \(grants.version)"
}
tell("status") { "\(try app.consentStatus("photos"))" }
tell("request") { "\(try app.requestConsent("contacts"))" }
tell("panel") { try app.openPanel(.save(name: "Letter.txt"), types: ["public.text", ".md"]) }
tell("items") {
  let page = try app.items("songs")
  return "\(page.json) \(page.next ?? "at the end")"
}
tell("photo") {
  try app.addPhoto(CommandLine.arguments.last ?? "")
  return "added"
}
tell("opened") { try app.awaitOpened().joined(separator: ", ") }
tell("call") { try app.call(#"{"verb":"status"}"#) }

// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import PackageDescription

let package = Package(
  name: "insula-bench",
  products: [.executable(name: "insula-bench", targets: ["insula-bench"])],
  targets: [
    // C: declarations that Swift's Glibc module does not show.
    .target(name: "CBench", cSettings: [.define("_GNU_SOURCE")]),
    .executableTarget(
      name: "insula-bench",
      dependencies: ["CBench"],
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .treatAllWarnings(as: .error),
      ]),
  ]
)

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct MIMEGlobsTests {
  private let globs = MIMEGlobs(
    globs2: """
      # comment
      80:text/html:*.html
      50:application/xhtml+xml:*.html
      50:image/x-krita:*.KRA
      50:text/x-c++src:*.C:cs
      50:application/x-compressed-tar:*.tar.gz
      50:text/x-readme:README*
      50:application/x-troff-man:*.[1-9]
      x:application/broken:*.broken
      50:short
      40:audio/x-late:*.late
      60:audio/x-early:*.late
      50:application/x-markdown-else:*.mdx
      50:text/markdown:*.mdown
      50:application/x-slash:*.a/b
      50:application/x-four:*.four:

      """)

  @Test func onlyExtensionsAreTaken() {
    #expect(globs["html"] == "text/html")
    #expect(globs["kra"] == "image/x-krita")
    #expect(globs["late"] == "audio/x-early")
    #expect(globs["four"] == "application/x-four")
    for name in ["c", "gz", "tar.gz", "broken", "1", "a/b", "md"] { #expect(globs[name] == nil, "\(name)") }
    #expect(globs.count == 6)
  }

  @Test func theyFillWhatTheTableLeavesOpen() {
    let table = TypeTable.base.with(globs)
    let markdown = table.type(of: "a.mdown", .file)
    #expect(markdown.identifier == "net.daringfireball.markdown")
    let krita = table.type(of: "a.kra", .file)
    #expect(krita.identifier == DynamicType.identifier(forExtension: "kra"))
    #expect(krita.mimeTypes == ["image/x-krita"])
    #expect(table.kind(of: krita) == "KRA image")
    #expect(table.conforms(krita.identifier, to: "public.image"))
    #expect(table.mimeType(of: krita, named: "a.kra") == "image/x-krita")
    #expect(table.type(of: "a.kra", .folder).identifier == "public.folder")
  }

  @Test func ofATypesMIMETypesTheMachinesIsGiven() {
    let table = TypeTable.base.with(MIMEGlobs(globs2: "50:application/javascript:*.js\n50:x/y:*.png\n"))
    #expect(table.mimeType(of: table.type(of: "a.js", .file), named: "a.js") == "application/javascript")
    #expect(table.mimeType(of: table.type(of: "a.png", .file), named: "a.png") == "image/png")
    #expect(TypeTable.base.mimeType(of: table.type(of: "a.js", .file), named: "a.js") == "text/javascript")
  }

  @Test func hostileTextIsPassedOver() {
    #expect(MIMEGlobs(globs2: "").count == 0)
    #expect(MIMEGlobs(globs2: ":::\n::\n99999999999999999999:a/b:*.c\n-1:a/b:*.").count == 0)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// A seal made from the rules of the format without any code of ours, in the layout of Apple's tools.
@Suite struct PythonSealTests {
  /// Seals the bundle whose paths begin at argument 1, of the shape of argument 2.
  ///
  /// Bundles in it are given as `path=cdhash`.
  private static let script = #"""
    import hashlib, os, plistlib, re, sys
    base, shape = sys.argv[1:3]
    nested = dict(word.split('=') for word in sys.argv[3:])
    r = 'Resources/' if shape == 'contents' else ''
    lproj = {
      '^%s.*\\.lproj/' % r: {'optional': True, 'weight': 1000.0}, '^%sBase\\.lproj/' % r: {'weight': 1010.0},
      '^%s.*\\.lproj/locversion.plist$' % r: {'omit': True, 'weight': 1100.0}}
    rules = {'^version.plist$': True, ('^' + r) if r else '^.*': True, **lproj}
    rules2 = {
      '^.*': True, '.*\\.dSYM($|/)': {'weight': \#
    11.0}, '^(.*/)?\\.DS_Store$': {'omit': True, 'weight': 2000.0},
      '^Info\\.plist$': {'omit': True, 'weight': 20.0}, '^PkgInfo$': {'omit': True, 'weight': 20.0},
      '^version\\.plist$': {'weight': 20.0}, '^embedded\\.provisionprofile$': {'weight': 20.0}, **lproj}
    if r:
      rules2.update({
        '^[^/]+$': {'nested': True, 'weight': 10.0}, '^Resources/': {'weight': 20.0},
        '^(Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|\#
    Library/(Automator|Spotlight|LoginItems))/':
          {'nested': True, 'weight': 10.0}})
    def rule(rules, path):
      best = None
      for pattern in sorted(rules):
        value = rules[pattern]
        value = value if isinstance(value, dict) else {'omit': not value}
        if re.search(pattern, path) and (best is None or \#
    value.get('weight', 1) > best.get('weight', 1)): best = value
      return best or {'omit': True}
    files, files2 = {}, {}
    def walk(directory):
      for name in os.listdir(os.path.join(base, directory)):
        path = os.path.join(directory, name)
        full = os.path.join(base, path)
        if path in ('_CodeSignature', 'CodeResources', '_MASReceipt', 'MacOS/test' if r else 'test'): continue
        found = rule(rules2, path)
        optional = {'optional': True} if found.get('optional') else {}
        if os.path.islink(full):
          if not found.get('omit'): files2[path] = {'symlink': os.readlink(full), **optional}
        elif os.path.isdir(full):
          if found.get('nested') and '.' in name:
            files2[path] = {'cdhash': bytes.fromhex(nested[path]), \#
    'requirement': 'identifier "org.example.framework"'}
          else: walk(path)
        else:
          data = open(full, 'rb').read()
          if not found.get('omit'): files2[path] = {'hash2': hashlib.sha256(data).digest(), **optional}
          first = rule(rules, path)
          if not first.get('omit') and not found.get('omit'):
            sha1 = hashlib.sha1(data).digest()
            files[path] = {'hash': sha1, 'optional': True} if first.get('optional') else sha1
    walk('')
    os.makedirs(os.path.join(base, '_CodeSignature'), exist_ok=True)
    with open(os.path.join(base, '_CodeSignature/CodeResources'), 'wb') as file:
      plistlib.dump({'files': files, 'files2': files2, 'rules': rules, 'rules2': rules2}, file)
    """#

  private func bundle(_ shape: CodeBundle.Shape) throws -> TestBundle {
    let bundle = try TestBundle(shape)
    let resources = shape == .contents ? bundle.base + "/Resources" : bundle.base
    try TestBundle.write([1], to: resources + "/übung & <mehr>.txt")
    try TestBundle.write([2], to: resources + "/fr.lproj/locversion.plist")
    try TestBundle.write([3], to: bundle.base + "/version.plist")
    try TestBundle.write([4], to: bundle.base + "/embedded.provisionprofile")
    try TestBundle.write([5], to: bundle.base + "/loose")
    try TestBundle.write([6], to: bundle.base + "/MacOS/tool")
    try TestBundle.makeSmall(at: bundle.base + "/Frameworks/A.framework", .flat, "org.example.framework")
    return bundle
  }

  @Test(arguments: [CodeBundle.Shape.contents, .flat])
  func sealsMadeByOthersVerify(shape: CodeBundle.Shape) throws {
    let bundle = try bundle(shape)
    // For the signature of the bundle in it, which is none of the seal's business.
    try bundle.sign()
    let ours = try ResourceSeal(reading: TestBundle.read(bundle.base + "/_CodeSignature/CodeResources"))
    let nested = ours.entries.compactMap { entry -> String? in
      guard case .nested(let seal) = entry.content else { return nil }
      return entry.path + "="
        + seal.cdhash.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    #expect(nested.count == (shape == .contents ? 1 : 0))
    unlink(bundle.base + "/_CodeSignature/CodeResources")
    let word = shape == .contents ? "contents" : "flat"
    let result = try Program.run(["python3", "-c", Self.script, bundle.base, word] + nested)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try bundle.findingsOfSeal().map(\.message) == [])
    // And it is the seal that we have made.
    #expect(try ResourceSeal(reading: TestBundle.read(bundle.base + "/_CodeSignature/CodeResources")) == ours)
    try TestBundle.write([0], to: bundle.base + "/loose")
    #expect(try bundle.findingsOfSeal().map(\.kind) == [.changed])
  }
}

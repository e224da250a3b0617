#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Makes Hand.app in the working directory, and signs it: by openssl, and Python with its own plistlib.

No code of ours is in it. What it knows of the form of seals, code directories and signatures is in Apple's sources and
RFC 5652. root.pem beside it is the certificate to trust:

    python3 make.py && insula trust add root.pem && insula verify Hand.app
"""
import hashlib, os, plistlib, struct, subprocess

def openssl(*words): subprocess.run(('openssl',) + words, check=True, stderr=subprocess.DEVNULL)

# Who signs: a root, and below it someone of the team HAND000001.
openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '30',
        '-keyout', 'root.key', '-out', 'root.pem', '-subj', '/CN=Hand Root')
with open('leaf.cnf', 'w') as file:
  file.write('basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n')
openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc',
        '-keyout', 'leaf.key', '-out', 'leaf.csr', '-subj', '/CN=Hand/OU=HAND000001')
openssl('x509', '-req', '-in', 'leaf.csr', '-CA', 'root.pem', '-CAkey', 'root.key', '-CAcreateserial',
        '-days', '20', '-extfile', 'leaf.cnf', '-out', 'leaf.pem')

# What is signed.
base = 'Hand.app/Contents'
files = {
  'MacOS/hand': b'#!/bin/sh\n' + b'echo by hand\n' * 600,
  'Resources/page.html': b'<p>A page.</p>\n',
  'Resources/en.lproj/Names.strings': b'"a" = "b";\n',
  'Resources/Base.lproj/Main.txt': b'main\n',
  'Resources/.DS_Store': b'whatever',
  'Frameworks-notes.txt': b'beside\n',
  'PkgInfo': b'APPL????',
}
for name, data in files.items():
  os.makedirs(os.path.dirname(f'{base}/{name}'), exist_ok=True)
  with open(f'{base}/{name}', 'wb') as file: file.write(data)
os.chmod(f'{base}/MacOS/hand', 0o755)
os.symlink('page.html', f'{base}/Resources/first.html')
with open(f'{base}/Info.plist', 'wb') as file:
  plistlib.dump({'CFBundleIdentifier': 'org.example.hand', 'CFBundleName': 'Hand', 'CFBundleExecutable': 'hand',
                 'CFBundleVersion': '7', 'CFBundlePackageType': 'APPL'}, file)

# The seal of the resources.
nested = '^(Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|Library/(Automator|Spotlight|LoginItems))/'
rules2 = {
  '^.*': True, '^[^/]+$': {'nested': True, 'weight': 10.0}, nested: {'nested': True, 'weight': 10.0},
  r'.*\.dSYM($|/)': {'weight': 11.0}, r'^(.*/)?\.DS_Store$': {'omit': True, 'weight': 2000.0},
  r'^Info\.plist$': {'omit': True, 'weight': 20.0}, r'^PkgInfo$': {'omit': True, 'weight': 20.0},
  r'^version\.plist$': {'weight': 20.0}, r'^embedded\.provisionprofile$': {'weight': 20.0},
  '^Resources/': {'weight': 20.0}, r'^Resources/.*\.lproj/': {'optional': True, 'weight': 1000.0},
  r'^Resources/Base\.lproj/': {'weight': 1010.0},
  r'^Resources/.*\.lproj/locversion.plist$': {'omit': True, 'weight': 1100.0},
}
rules = {
  '^version.plist$': True, '^Resources/': True, r'^Resources/.*\.lproj/': {'optional': True, 'weight': 1000.0},
  r'^Resources/Base\.lproj/': {'weight': 1010.0},
  r'^Resources/.*\.lproj/locversion.plist$': {'omit': True, 'weight': 1100.0},
}
sha256 = lambda data: hashlib.sha256(data).digest()
sha1 = lambda data: hashlib.sha1(data).digest()
entry = lambda name: {'hash2': sha256(files[name])}
files2 = {
  'Resources/page.html': entry('Resources/page.html'),
  'Resources/en.lproj/Names.strings': {**entry('Resources/en.lproj/Names.strings'), 'optional': True},
  'Resources/Base.lproj/Main.txt': entry('Resources/Base.lproj/Main.txt'),
  'Resources/first.html': {'symlink': 'page.html'},
  'Frameworks-notes.txt': entry('Frameworks-notes.txt'),
}
files1 = {name: sha1(files[name]) for name in ['Resources/page.html', 'Resources/Base.lproj/Main.txt']}
files1['Resources/en.lproj/Names.strings'] = {'hash': sha1(files['Resources/en.lproj/Names.strings']), 'optional': True}
os.mkdir(f'{base}/_CodeSignature')
resources = plistlib.dumps({'files': files1, 'files2': files2, 'rules': rules, 'rules2': rules2})
entitlements = plistlib.dumps({'com.apple.security.app-sandbox': True})

# The code directory.
info = open(f'{base}/Info.plist', 'rb').read()
code = files['MacOS/hand']
pages = [sha256(code[at:at + 4096]) for at in range(0, len(code), 4096)]
parts = [sha256(entitlements), bytes(32), sha256(resources), bytes(32), sha256(info)]
identifier, team = b'org.example.hand\0', b'HAND000001\0'
start = 88 + len(identifier) + len(team) + 32 * len(parts)
length = start + 32 * len(pages)
directory = struct.pack('>9I4B2IIIQ3Q', 0xfade0c02, length, 0x20400, 0, start, 88, len(parts), len(pages), len(code),
                        32, 2, 0, 12, 0, 0, 88 + len(identifier), 0, 0, 0, 0, 0)
directory += identifier + team + b''.join(parts) + b''.join(pages)
assert len(directory) == length

for name, data in [('CodeResources', resources), ('CodeEntitlements', entitlements), ('CodeDirectory', directory)]:
  with open(f'{base}/_CodeSignature/{name}', 'wb') as file: file.write(data)
openssl('cms', '-sign', '-binary', '-in', f'{base}/_CodeSignature/CodeDirectory', '-signer', 'leaf.pem',
        '-inkey', 'leaf.key', '-md', 'sha256', '-outform', 'DER', '-out', f'{base}/_CodeSignature/CodeSignature')

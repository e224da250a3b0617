# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""The table in the documentation: what each program did, and what it can't do."""

HEAD = """\
# Programs as apps

`insula new-app --from` makes an app of a program of the machine, and `insula run` runs it in a view that has
nothing in it but what the app may use. `make programs` does that with the programs below: it makes each app,
signs it, packs it, installs the file, runs it as an ordinary user, and checks what it has done. It writes this
table, so a row is here because it was true.

    insula new-app Vim --from vim
    insula sign Vim.app --entitlements Vim.entitlements
    insula install Vim.app
    insula run org.example.vim --args Documents/note.txt

Every app has `com.apple.security.app-sandbox`; the column says what else it needs (the names without
`com.apple.security.`, unless they begin with `org.`).

| program | made with | entitlement | what it does in its view | what it can't do, and why |
|---|---|---|---|---|
"""

FOOT = """
Rules that follow from this, for other programs:

- A program of `/usr` needs only itself in its bundle, since apps see `/usr`. Libraries from elsewhere come along
  (`--libraries`).
- The home of an app is its container, and it sees nothing of the user's home without a grant. What it opens by
  its arguments must be in there: `Documents/note.txt`, or what `insula grant` has granted.
- What programs keep in their home under names with a dot (`.viminfo`, `.bash_history`, `.gitconfig`, `.config`) is in
  the container, beside `Documents` and `Library`. That holds for apps with a directory `Contents`, which `new-app`
  makes; an app that was made with `--flat` has no such names. Names without a dot are refused there, also as
  temporary ones (`sed -i .profile`). Programs that follow XDG have their settings in
  `Library/Preferences`, and their data in `Library/Application Support`.
- Without `network.client` or `network.server` an app has a network of its own, with nobody in it. With either it
  has the machine's: the kernel can't tell calling from being called here.
- What an app has written, it can't run, unless it has `cs.disable-library-validation`.
- Programs with a window need an entitlement for it, `org.insula.desktop.wayland` or `x11`, and find no display
  without. Who has X11 can see what is typed into all other windows of that display.
- Rights of a file (setuid, capabilities) don't work in an app, and are not copied.
"""


def write_table(path, works):
    rows = [
        f"| {work.title} | `{work.made_with}` | {work.rights} | {work.did} | {work.cannot} |\n" for work in works
    ]
    with open(path, "w") as file:
        file.write(HEAD + "".join(rows) + FOOT)

# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# What an app hears on its session bus: of two services, and when it wants four names.
call() {
  dbus-send --session --print-reply --dest=$1 / $2 $3 $4 2>&1 | grep -oE 'string.*|uint32 .*|Error [^:]*'
}
for name in Allowed Hidden; do call org.example.$name org.example.Service.Name; done
for name in org.example.notes org.example.notes.window org.example.owned org.example.other; do
  call org.freedesktop.DBus org.freedesktop.DBus.RequestName string:$name uint32:0
done

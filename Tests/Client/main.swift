// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

print("x")

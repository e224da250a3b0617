// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Commands
internal import Glibc

exit(Insula.main())

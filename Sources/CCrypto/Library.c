// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CCrypto.h"

// Without digests nothing may go on: an app whose seal can't be computed would look like a damaged one.
#define LIBRARY "libcrypto.so.3"
#define TITLE "libcrypto"
#define ADVICE "install OpenSSL 3 (on Debian the package libssl3t64 or libssl3)"
#define LOAD ccrypto_load
#define FUNCTIONS "../CCrypto/Functions.h"
#include "../CLinux/LoadedLibrary.h"

EVP_PKEY *ccrypto_generate_p256(void) { return library()->EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"); }

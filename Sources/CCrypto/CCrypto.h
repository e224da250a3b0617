// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// libcrypto, as far as bundles need it: digests, keys, certificates, signed messages.
#ifndef CCRYPTO_H
#define CCRYPTO_H

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif

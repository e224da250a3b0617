// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// libcrypto, as far as bundles need it: digests, keys, certificates, signed messages. It is loaded when the
// first of its functions is called, not when the program starts: most commands need none, and it would be a
// quarter of their time.
#ifndef CCRYPTO_H
#define CCRYPTO_H

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// Loads libcrypto unless that is done; NULL, or why it can't be loaded. Who calls a function of a library
// that is not there has not asked, and is ended with that message.
const char *ccrypto_load(void);

// What libcrypto has as macros or as functions with open argument lists, neither of which Swift can call.

// STACK_OF(X509) has macros only.
static inline struct stack_st_X509 *ccrypto_certificates_new(void) { return sk_X509_new_null(); }
static inline int ccrypto_certificates_push(struct stack_st_X509 *list, X509 *one) {
  return sk_X509_push(list, one);
}
static inline int ccrypto_certificates_count(const struct stack_st_X509 *list) { return sk_X509_num(list); }
static inline X509 *ccrypto_certificates_at(const struct stack_st_X509 *list, int index) {
  return sk_X509_value(list, index);
}
// Frees the list alone, and the list with what is in it.
static inline void ccrypto_certificates_free(struct stack_st_X509 *list) { sk_X509_free(list); }
static inline void ccrypto_certificates_free_all(struct stack_st_X509 *list) {
  sk_X509_pop_free(list, X509_free);
}

// STACK_OF(CMS_SignerInfo) likewise.
static inline int ccrypto_signers_count(const struct stack_st_CMS_SignerInfo *list) {
  return sk_CMS_SignerInfo_num(list);
}
static inline CMS_SignerInfo *ccrypto_signers_at(const struct stack_st_CMS_SignerInfo *list, int index) {
  return sk_CMS_SignerInfo_value(list, index);
}

// BIO_get_mem_data is a macro.
static inline long ccrypto_memory(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

// OPENSSL_free is a macro that adds file and line.
static inline void ccrypto_free(void *memory) { OPENSSL_free(memory); }

// EVP_EC_gen("P-256"), a macro over a function with an open argument list.
EVP_PKEY *ccrypto_generate_p256(void);

// A macro made of others with casts.
static const unsigned long ccrypto_name_in_one_line = XN_FLAG_RFC2253;

#endif

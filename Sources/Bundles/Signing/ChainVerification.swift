// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// Leads a certificate back to a root that is trusted.
struct ChainVerification {
  let roots: [Certificate]
  /// In seconds since 1970.
  let time: Int64

  /// The chain from `leaf` to a root, by way of `others`; or what stands against it.
  func chain(
    of leaf: Certificate, among others: [Certificate]
  ) throws(CryptoFailure) -> Result<[Certificate], Finding> {
    let doing = "verify a certificate"
    guard let store = X509_STORE_new() else { throw CryptoFailure(doing: doing) }
    defer { X509_STORE_free(store) }
    for root in roots {
      let object = try CertificateObject.reading(root.der)
      guard X509_STORE_add_cert(store, object.pointer) == 1 else { throw CryptoFailure(doing: doing) }
    }
    guard let context = X509_STORE_CTX_new() else { throw CryptoFailure(doing: doing) }
    defer { X509_STORE_CTX_free(context) }
    let subject = try CertificateObject.reading(leaf.der)
    let list = try CertificateList.holding(others)
    guard X509_STORE_CTX_init(context, store, subject.pointer, list.pointer) == 1,
      let parameters = X509_STORE_CTX_get0_param(context)
    else { throw CryptoFailure(doing: doing) }
    X509_VERIFY_PARAM_set_time(parameters, Int(time))
    X509_VERIFY_PARAM_set_depth(parameters, Int32(SignedMessageShape.maximumCertificates))
    // Level 2 leaves out SHA-1 and keys with less than 112 bits of strength.
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)

    let isGood = X509_verify_cert(context) == 1
    let error = X509_STORE_CTX_get_error(context)
    guard isGood, error == X509_V_OK, let found = X509_STORE_CTX_get0_chain(context) else {
      let current = try X509_STORE_CTX_get_current_cert(context).map { (object) throws(CryptoFailure) in
        try Certificate(object)
      }
      ERR_clear_error()
      return .failure(finding(error, at: current ?? leaf))
    }
    let chain = try Certificate.all(in: found)
    if let finding = findingOfPurpose(chain) { return .failure(finding) }
    return .success(chain)
  }

  private func finding(_ error: Int32, at certificate: Certificate) -> Finding {
    let reason = String(cString: X509_verify_cert_error_string(Int(error)))
    let detail = "'\(certificate.name)': \(reason)"
    switch error {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Finding(.expired, detail: "'\(certificate.name)' on \(calendarDay(certificate.validUntil))")
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Finding(.notYetValid, detail: "'\(certificate.name)' from \(calendarDay(certificate.validFrom))")
    case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA, X509_V_ERR_PATH_LENGTH_EXCEEDED,
      X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
      return Finding(.wrongPurpose, detail: detail)
    default:
      return Finding(.untrusted, detail: detail)
    }
  }

  /// libcrypto 3.0 knows no purpose of signing code, so the chain is looked at here.
  private func findingOfPurpose(_ chain: [Certificate]) -> Finding? {
    for (index, certificate) in chain.enumerated() {
      guard certificate.isAuthority == (index > 0) else {
        let what = index > 0 ? "is not a CA certificate" : "is a CA certificate"
        return Finding(.wrongPurpose, detail: "'\(certificate.name)' \(what)")
      }
      guard certificate.isForCode else {
        return Finding(.wrongPurpose, detail: "'\(certificate.name)' is not for code signing")
      }
    }
    guard let leaf = chain.first, leaf.hasP256Key else {
      return Finding(.wrongPurpose, detail: "the signer's key is not an ECDSA key on P-256")
    }
    return nil
  }
}

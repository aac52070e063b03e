const CODES = /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH)/;

/** Whether the code of an error of Node means that the certificate of a server does not verify. */
export function isCertificateError(code: string): boolean {
  return CODES.test(code);
}

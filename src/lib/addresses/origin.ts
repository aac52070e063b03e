/** The origin (scheme and host) that a request with this `Host` header was sent to; '' if the header is malformed. */
export function originOf(host: string, secure: boolean): string {
  return /^[A-Za-z0-9.:[\]_-]+$/.test(host) ? `${secure ? 'https' : 'http'}://${host}` : '';
}

/** The address that a request with this `Host` was sent to, without a path; '' when it is no name. */
export function originOf(host: string, secure: boolean): string {
  return /^[A-Za-z0-9.:[\]_-]+$/.test(host) ? `${secure ? 'https' : 'http'}://${host}` : '';
}

/** An entry of an `Accept` or `Accept-Encoding` header. */
export interface AcceptEntry {
  /** In lower case, without parameters. */
  readonly name: string;
  /** False with `q=0`, which means "not acceptable" (RFC 9110, 12.4.2). */
  readonly isAccepted: boolean;
}

/** The entries of an `Accept` or `Accept-Encoding` header, in its order. */
export function acceptEntries(header: string): AcceptEntry[] {
  return header.split(',').map((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((text) => text.trim().toLowerCase());
    return { name, isAccepted: !parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter)) };
  });
}
